/** What an agent in a real cluster survives: the API server away, frozen, without its history, at the start. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Pod } from "../../src/model/generated/types.ts";
import { type CheckpointContent, unseal } from "../../src/sources/api-checkpoint.ts";
import type { Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, isReady, skipWithoutCluster } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";

skipWithoutCluster();

const AWAY_MS = 60_000;
/** Nobody schedules here: the pods of sets are bound by their template. */
const TO_THE_NODE = { nodeName: "node-a" };

describe("an agent whose API server misbehaves", () => {
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
  const ids = (pod: Pod | undefined): unknown =>
    pod?.status?.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount]);
  const running = (): Promise<string[]> => site.tasks();
  const remove = (...names: readonly string[]): Promise<void> => site.removePods(...names);
  const NOTHING: CheckpointContent = { pods: [], configMaps: [], secrets: [], services: [], runtimeClasses: [] };
  /** What the next start without an API server finds. */
  const checkpoint = (): CheckpointContent => {
    const [sealed, key] = ["api-checkpoint", "api-checkpoint.key"].map((name) => join(site.root, name));
    if (sealed === undefined || key === undefined || !existsSync(sealed)) return NOTHING;
    const text = unseal(readFileSync(sealed, "utf8"), Buffer.from(readFileSync(key, "utf8").trim(), "hex"));
    return (JSON.parse(text) as { content: CheckpointContent }).content;
  };

  test("the API server is killed for a minute: pods go on and are restarted, and later all converges", async () => {
    site.apply(bound("kept"));
    site.apply(bound("restarts"));
    const kept = await site.podReady("kept");
    const other = await site.podReady("restarts");
    const tasks = await running();
    await site.plane.killApiServer();
    const back = performance.now() + AWAY_MS;
    const id = other.status?.containerStatuses?.[0]?.containerID?.replace("containerd://", "") ?? "";
    await site.containerd.ctr("tasks", "kill", "-s", "SIGKILL", id);
    const after = await until("another container runs in its place", async () => {
      const now = await running();
      return now.length === tasks.length && !now.includes(id) && now;
    });
    assert.deepEqual(
      after.filter((task) => tasks.includes(task)),
      tasks.filter((task) => task !== id),
    );
    await pause(back - performance.now());
    assert.deepEqual(await running(), after);
    await site.plane.startApiServer();
    await site.podIs(
      "restarts",
      "tells of its restart",
      (pod) => isReady(pod) && pod.status?.containerStatuses?.[0]?.restartCount === 1,
    );
    site.apply(bound("later"));
    await site.podReady("later");
    await site.renewed();
    // The controllers may have taken the node for dead, and its pods for unready.
    await site.nodeReady();
    assert.deepEqual(ids(await site.podReady("kept")), ids(kept));
    await remove("kept", "restarts", "later");
  });

  test("history that was compacted while the server was away: changes made meanwhile are seen", async () => {
    site.apply(bound("old"));
    await site.podReady("old");
    await site.plane.killApiServer();
    await site.plane.compact();
    await site.plane.startApiServer();
    site.apply(bound("new"));
    await site.podReady("new");
    await remove("old", "new");
  });

  test("a server that freezes without closing its connections is noticed, and the lease is renewed after it", async () => {
    await site.plane.freezeApiServer();
    await pause(12_000);
    site.plane.thawApiServer();
    site.apply(bound("thawed"));
    await site.podReady("thawed");
    await remove("thawed");
    await site.renewed();
  });

  test("the agent starts while the API server is away: containers are kept, and then it joins", async () => {
    site.apply(bound("survivor"));
    const before = await site.podReady("survivor");
    const tasks = await running();
    await site.plane.killApiServer();
    await agent.end("SIGKILL");
    agent = await site.join();
    await pause(5000);
    assert.deepEqual(await running(), tasks);
    await site.plane.startApiServer();
    site.apply(bound("after"));
    await site.podReady("after");
    assert.deepEqual(ids(site.pod("survivor")), ids(before));
    await remove("survivor", "after");
  });

  test("after a reboot without the API server pods that may run twice start with all they use, others do not", async () => {
    site.kubectl("create", "secret", "generic", "word", "--from-literal=word=open-sesame");
    site.kubectl("create", "configmap", "settings", "--from-literal=colour=blue");
    // Secrets are on disk only if the administrator says so.
    await agent.end("SIGTERM");
    agent = await site.join(["--checkpoint-secrets"]);
    const script = "cat /s/word; echo; echo $colour; trap 'exit 0' TERM; while :; do sleep 1; done";
    const spec = {
      terminationGracePeriodSeconds: 2,
      // Service account tokens are never on disk: a pod that needs one waits for the API server.
      automountServiceAccountToken: false,
      volumes: [{ name: "s", secret: { secretName: "word" } }],
      containers: [
        {
          name: "main",
          image: TEST_IMAGES.busybox,
          imagePullPolicy: "Never",
          command: ["/bin/sh", "-c", script],
          envFrom: [{ configMapRef: { name: "settings" } }],
          volumeMounts: [{ name: "s", mountPath: "/s" }],
        },
      ],
    };
    const optedIn = { annotations: { "kubelet-ts/start-without-api-server": "true" } };
    const bare = bound("safe", spec);
    site.apply({ ...bare, metadata: { ...bare.metadata, ...optedIn } });
    const selector = { matchLabels: { app: "daemon" } };
    site.apply({
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: "daemon" },
      spec: { selector, template: { metadata: { labels: selector.matchLabels }, spec: { ...spec, ...TO_THE_NODE } } },
    });
    const set = { ...optedIn, labels: { app: "set" } };
    site.apply({
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "set" },
      spec: {
        selector: { matchLabels: { app: "set" } },
        serviceName: "set",
        replicas: 1,
        template: { metadata: set, spec: bound("set").spec },
      },
    });
    site.apply(bound("unsafe"));
    const safe = await site.podReady("safe");
    await site.podReady("unsafe");
    await site.podReady("set-0");
    const daemon = await until("the daemon is ready", () => site.pods("app=daemon").find(isReady), { limitMs: 90_000 });
    await until("the two pods with all they use are in the checkpoint", () => {
      const { pods, secrets, configMaps } = checkpoint();
      const names = [...pods, ...secrets, ...configMaps].map(({ metadata }) => metadata.name);
      return ["safe", daemon.metadata.name, "word", "settings"].every((name) => names.includes(name));
    });
    for (const name of ["api-checkpoint", "api-checkpoint.key"]) {
      assert.equal(statSync(join(site.root, name)).mode & 0o777, 0o600);
    }
    assert.doesNotMatch(readFileSync(join(site.root, "api-checkpoint"), "utf8"), /sesame|b3Blbi1zZXNhbWU|DaemonSet/);
    await site.plane.killApiServer();
    await agent.end("SIGKILL");
    await site.containerd.removeEverything();
    rmSync(join(site.dir, "logs"), { recursive: true });
    assert.deepEqual(await running(), []);
    agent = await site.join(["--checkpoint-secrets"]);
    await until("the two pods run", async () => (await running()).length === 4, {
      limitMs: 90_000,
      seen: () => agent.stderr.slice(-3000),
    });
    await pause(3000);
    assert.equal((await running()).length, 4);
    for (const pod of [safe, daemon]) {
      const said = await until("its words", () => {
        const [word, colour = ""] = site.log(pod).split("\n").slice(-3);
        return colour !== "" && { word, colour };
      });
      assert.deepEqual([said.word, said.colour], ["open-sesame", "blue"]);
    }
    const tasks = await running();
    await site.plane.startApiServer();
    await site.podReady("unsafe");
    await site.podReady("set-0");
    assert.deepEqual(
      (await running()).filter((id) => tasks.includes(id)),
      tasks,
    );
    assert.equal(site.pod(daemon.metadata.name ?? "")?.metadata.uid, daemon.metadata.uid);
    site.kubectl("delete", "daemonset/daemon", "statefulset/set", "--wait=false");
    // The controllers would get there, too, once they have found the server again.
    await remove("safe", "unsafe", "set-0", daemon.metadata.name ?? "");
  });
});
