/** A machine that lost its power and starts again: the node says so, its pods run again, and nothing of before is left. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import type { Event, Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";

skipWithoutCluster();

const image = { image: TEST_IMAGES.busybox, imagePullPolicy: "Never" };
const mounts = [
  { name: "disk", mountPath: "/disk" },
  { name: "memory", mountPath: "/memory" },
];
const volumes = [
  { name: "disk", emptyDir: {} },
  { name: "memory", emptyDir: { medium: "Memory" } },
];
/** Counts its starts in both volumes, and shows them. */
const COUNT = "for at in disk memory; do echo x >> /$at/starts; echo $at $(wc -l < /$at/starts); done";
const stubborn = "trap 'echo told' TERM; while :; do sleep 1; done";

describe("a machine that lost its power", () => {
  let site: ClusterSite;
  let agent: Program;
  const pods = new Map<string, Pod>();

  const apply = (name: string, script: string, spec: object = {}): void => {
    const containers = [{ ...image, name: "main", command: ["/bin/sh", "-c", script], volumeMounts: mounts }];
    site.apply(site.bound(name, { containers, volumes, terminationGracePeriodSeconds: 120, ...spec }));
  };
  const uidOf = (name: string): string => pods.get(name)?.metadata.uid ?? "";
  const cgroups = (uid: string): string[] => {
    // Cgroups of other suites are removed under it: it complains and fails, and has looked at all the others.
    const { stdout, status } = spawnSync("find", ["/sys/fs/cgroup", "-type", "d", "-name", `*pod${uid}*`], {
      encoding: "utf8",
    });
    assert.notEqual(status, null, "find ran");
    return stdout.split("\n").filter((line) => line !== "");
  };
  const mounted = (): string[] =>
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
      .filter((path) => path.startsWith(`${site.root}/pods/`));

  before(async () => {
    site = await ClusterSite.start({ controllers: true });
    agent = await site.join();
    await site.nodeReady();
    apply("web", `${COUNT}; ${stubborn}`);
    apply("job", stubborn, { restartPolicy: "Never" });
    apply("ending", stubborn);
    for (const name of ["web", "job", "ending"]) pods.set(name, await site.podReady(name));
    site.kubectl("delete", "pod", "ending", "--wait=false");
    const ending = pods.get("ending");
    await until("it is told to stop", () => ending !== undefined && /told/.test(site.log(ending)));
    await agent.end("SIGKILL");
    await site.containerd.losePower();
    for (const path of mounted().reverse()) execFileSync("umount", [path]);
    // The boot id cannot be changed: the API server gets another one instead.
    const status = { status: { nodeInfo: { bootID: "the-boot-before" } } };
    site.kubectl("patch", "node", site.nodeName, "--subresource=status", "-p", JSON.stringify(status));
    await site.containerd.start();
    agent = await site.join();
  });
  afterEach(() => assert.ok(!agent.isOver, agent.stderr.slice(-3000)));
  after(() => site?.close());

  test("is reported as rebooted, with its boot id, once", async () => {
    const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const events = await until(
      "the event",
      () => {
        const { items } = site.get<{ items: Event[] }>("events", "--field-selector=reason=Rebooted");
        return items.length > 0 && items;
      },
      { limitMs: 90_000, seen: () => agent.stderr.slice(-3000) },
    );
    assert.deepEqual(
      events.map(({ message, type, count }) => [type, message, count]),
      [["Warning", `Node ${site.nodeName} has been rebooted, boot id: ${bootId}`, 1]],
    );
    // The event does not wait for the status.
    const reported = (): string | undefined => site.node()?.status?.nodeInfo?.bootID;
    await until("its boot id", () => reported() === bootId, { seen: reported });
  });

  test("runs its pods again, with what they kept on disk; memory is empty", async () => {
    const again = await site.podIs("web", "runs again", ({ status }) => {
      const [container] = status?.containerStatuses ?? [];
      return container?.state?.running !== undefined && container.restartCount > 0;
    });
    assert.equal(again.metadata.uid, uidOf("web"));
    await until("it has counted", () => site.log(again).includes("memory"));
    assert.match(site.log(again), /^disk 2\nmemory 1$/m);
  });

  test("does not start a pod again that may run only once", async () => {
    const { status } = await site.podIs("job", "has failed", (one) => one.status?.phase === "Failed");
    assert.equal(status?.containerStatuses?.[0]?.restartCount, 0);
  });

  test("leaves no pod half terminated, and nothing of it behind", async () => {
    await site.podGone("ending");
    const uid = uidOf("ending");
    await until("its directory is gone", () => !existsSync(join(site.root, "pods", uid)));
    assert.deepEqual(cgroups(uid), []);
    // The pod that runs has its volume in memory and its token, the one that has failed nothing any more.
    const ofWeb = join(site.root, "pods", uidOf("web"));
    await until("no other pod has a mount", () => mounted().every((path) => path.startsWith(`${ofWeb}/`)));
  });
});
