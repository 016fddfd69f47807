/** What an agent in a real cluster finds when it comes back, rivals of its name, and more pods than it may run. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster } from "../support/cluster-site.ts";

skipWithoutCluster();

/** Pods that are bound to the node at once, and how many of them it takes unless told otherwise. */
const BOUND = 500;
const ALLOWED = 110;

describe("an agent that comes back, has a rival, or gets too many pods", () => {
  let site: ClusterSite;
  let agent: Program;
  before(async () => {
    site = await ClusterSite.start({ controllers: true });
    agent = await site.join();
    await site.nodeReady();
  });
  beforeEach(async () => {
    assert.ok(!agent.isOver, agent.stderr.slice(-3000));
    await site.clear();
  });
  after(() => site?.close());

  const bound = (name: string, spec: object = {}): Pod => site.bound(name, spec);
  const running = (): Promise<string[]> => site.tasks();

  test("a pod deleted while the agent was away is stopped when it comes back", async () => {
    site.apply(bound("deleted"));
    await site.podReady("deleted");
    await agent.end("SIGKILL");
    site.kubectl("delete", "pod", "deleted", "--wait=false");
    agent = await site.join();
    await site.podGone("deleted");
    await until("nothing runs", async () => (await running()).length === 0);
  });

  test("a pod removed by force while the agent was away is stopped, too", async () => {
    site.apply(bound("forced"));
    await site.podReady("forced");
    await agent.end("SIGKILL");
    site.kubectl("delete", "pod", "forced", "--force", "--grace-period=0");
    agent = await site.join();
    await until("nothing runs", async () => (await running()).length === 0, {
      limitMs: 90_000,
      seen: () => agent.stderr.slice(-2000),
    });
  });

  test("another agent of the same name is noticed and told of", async () => {
    const lease = await site.lease();
    const intruder = {
      metadata: { annotations: { "kubelet-ts/instance": "someone-else" } },
      spec: { renewTime: "2030-01-01T00:00:00.000000Z" },
    };
    site.kubectl(
      "patch",
      "lease",
      site.nodeName,
      "-n",
      "kube-node-lease",
      "--type=merge",
      "-p",
      JSON.stringify(intruder),
    );
    await until("the agent says so", () => agent.stderr.includes("Found another agent with the same node name"));
    await until(
      "it renews its lease again",
      async () => (await site.lease()).metadata.annotations?.["kubelet-ts/instance"] !== "someone-else",
    );
    assert.equal((await site.lease()).metadata.uid, lease.metadata.uid);
  });

  test("two agents that run with one name are both told of it", async () => {
    const said = "Found another agent with the same node name";
    await agent.end("SIGTERM");
    agent = await site.join();
    await site.renewed();
    assert.ok(!agent.stderr.includes(said));
    const second = await site.join([`--root-dir=${join(site.dir, "r2")}`, `--cert-dir=${join(site.dir, "pki2")}`]);
    await until("both say so", () => agent.stderr.includes(said) && second.stderr.includes(said), {
      limitMs: 60_000,
      seen: () => [agent.stderr.slice(-1500), second.stderr.slice(-1500)],
    });
    await until("an event tells of it", () => site.kubectl("get", "events").includes("NodeNameConflict"));
    await second.end("SIGTERM");
    await site.renewed();
  });

  test("more pods than may run are bound at once: those that find room run, the others fail with the reason", async () => {
    await agent.end("SIGTERM");
    agent = await site.join();
    await until("the node says so", () => site.node()?.status?.capacity?.["pods"] === String(ALLOWED));
    const items = Array.from({ length: BOUND }, (_, at) => bound(`many-${at}`));
    site.create(items);
    /** How many are in each phase; kept small, since 500 whole pods are megabytes. */
    const phases = (): Record<string, number> => {
      const found: Record<string, number> = {};
      const words = site.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}").split(" ");
      for (const word of words) found[word] = (found[word] ?? 0) + 1;
      return found;
    };
    const decided = async (): Promise<boolean> => {
      await pause(1000);
      const { Running, Failed } = phases();
      return Running === ALLOWED && Failed === BOUND - ALLOWED;
    };
    const reasons = (): unknown => [
      phases(),
      ...new Set(site.pods().map(({ status }) => `${status?.phase} ${status?.reason ?? ""} ${status?.message ?? ""}`)),
    ];
    await until("all are decided", decided, { limitMs: 400_000, seen: reasons });
    const failed = site.pods().find(({ status }) => status?.phase === "Failed");
    assert.equal(failed?.status?.reason, "OutOfpods");
    site.kubectl("delete", "pods", "--all", "--wait=false");
    const areGone = async (): Promise<boolean> => {
      await pause(1000);
      return site.kubectl("get", "pods", "-o", "name") === "";
    };
    await until("all are gone", areGone, { limitMs: 400_000, seen: phases });
  });
});
