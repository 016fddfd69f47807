/** A node that runs short of memory, disk, inodes and process ids: who is evicted, what is said of it, and that all others stay. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { readTasks } from "../../src/adapters/host/node-usage.ts";
import { PODS } from "../../src/adapters/kubeapi/resources.ts";
import type { Event, Node, Pod } from "../../src/model/generated/types.ts";
import { kubelet, type Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster, testPod } from "../support/cluster-site.ts";

skipWithoutCluster();

const MI = 2 ** 20;
/** Memory of all pods together: the machine itself is never short. */
const PODS_MEMORY = 300 * MI;
/** The filesystem of the agent's root directory. */
const DISK = "96M";

/** Tasks that may come beside those of now before there is pressure, and those that a pod makes to get there. */
const FEW_TASKS = 350;
const MANY_TASKS = 650;

const config = () => ({
  kubeReserved: { memory: `${Math.floor((totalmem() - PODS_MEMORY) / 1024)}Ki` },
  evictionHard: {
    "memory.available": "100Mi",
    "nodefs.available": "30Mi",
    "nodefs.inodesFree": "200",
    "pid.available": String(availableTasks() - FEW_TASKS),
  },
  evictionSoft: { "allocatableMemory.available": "180Mi" },
  evictionSoftGracePeriod: { "allocatableMemory.available": "6s" },
  evictionPressureTransitionPeriod: "3s",
  evictionMaxPodGracePeriod: 25,
});

function availableTasks(): number {
  const { most, running } = readTasks() ?? { most: 0, running: 0 };
  return most - running;
}

/** Writes into files that are neither in a volume nor in the layer of the container. */
const SCRIBBLE = ["/etc/hosts", "/dev/termination-log"]
  .map((file) => `dd if=/dev/zero of=${file} bs=1M count=5`)
  .join("; ");

/** Holds this much memory until it is killed; says so when it is told to stop. */
const holds = (mebi: number): string =>
  `trap 'echo told' TERM; dd if=/dev/zero bs=${mebi}M count=1 2>/dev/null | sleep 3600 & while :; do wait; sleep 0.05; done`;

function shellPod(name: string, script: string, container: object = {}): Pod {
  const { spec, ...pod } = testPod(name, { terminationGracePeriodSeconds: 30 });
  const containers = spec.containers.map((one) => ({ ...one, command: ["/bin/sh", "-c", script], ...container }));
  return { ...pod, spec: { ...spec, containers } };
}

/** A pod with an emptyDir at /data. */
function withVolume(name: string, script: string, emptyDir: { readonly sizeLimit?: string } = {}): Pod {
  const pod = shellPod(name, `${script}; sleep 3600`, { volumeMounts: [{ name: "data", mountPath: "/data" }] });
  return { ...pod, spec: { ...pod.spec, volumes: [{ name: "data", emptyDir }] } };
}

const isEvicted = ({ status }: Pod): boolean => status?.phase === "Failed" && status.reason === "Evicted";

describe("a node under pressure", () => {
  let site: ClusterSite;
  let agent: Program;
  let flags: readonly string[];
  let kept: Pod;

  before(async () => {
    site = await ClusterSite.start();
    const image = join(site.dir, "disk");
    execFileSync("truncate", ["-s", DISK, image]);
    execFileSync("mkfs.ext4", ["-q", "-F", "-m", "0", "-N", "1000", "-O", "^has_journal", image]);
    mkdirSync(site.root);
    execFileSync("mount", ["-o", "loop", image, site.root]);
    flags = [site.config(config()), `--client-ca-file=${join(site.plane.dir, "pki/ca.crt")}`];
    agent = await site.join(flags);
    await site.nodeReady();
    site.apply(shellPod("kept", "while :; do sleep 1; done", { resources: { requests: { memory: "20Mi" } } }));
    site.apply(withVolume("over", "dd if=/dev/zero of=/data/f bs=1M count=12", { sizeLimit: "8Mi" }));
    site.apply(
      shellPod("scribe", `${SCRIBBLE}; sleep 3600`, { resources: { limits: { "ephemeral-storage": "8Mi" } } }),
    );
    kept = await site.podReady("kept");
  });
  afterEach(() => assert.ok(!agent.isOver, agent.stderr.slice(-3000)));
  after(() => site?.close());

  const nodeIs = (what: string, isWanted: (node: Node) => boolean): Promise<Node> =>
    until(
      `the node ${what}`,
      async () => {
        const node = await site.lookAtNode();
        return node !== undefined && isWanted(node) && node;
      },
      { seen: () => [site.node()?.status?.conditions, agent.stderr.slice(-3000)] },
    );
  const has = (type: string, status: string) => (node: Node) =>
    node.status?.conditions?.some((one) => one.type === type && one.status === status) ?? false;
  const isTainted = ({ spec }: Node): boolean =>
    spec.taints?.some(({ key, effect }) => key === "node.kubernetes.io/memory-pressure" && effect === "NoSchedule") ??
    false;
  const evictionEvents = (): readonly Event[] =>
    site.get<{ items: Event[] }>("events", "--field-selector=reason=Evicted").items;
  const explainNode = () => kubelet(["explain", "--node", "--local-api-socket", join(site.root, "kubelet.sock")]);

  test("memory: the pod that takes it is evicted, with its numbers; the condition and its taint rise and fall", async () => {
    const { stdout } = await explainNode();
    assert.match(stdout, /^Pressure +none$/m);
    assert.match(stdout, /^ +allocatableMemory\.available .* hard below 100Mi$/m);
    assert.match(stdout, /default\/kept +priority 0 .* within its request$/m);
    site.apply(shellPod("hog", holds(230)));
    const tainted = nodeIs("is tainted", isTainted);
    await nodeIs("has memory pressure", has("MemoryPressure", "True"));
    // Bound by hand: the scheduler keeps off. Without kubectl, which may take longer than the pressure lasts.
    const object = testPod("late", { nodeName: site.nodeName });
    await site.plane.clients().calls.create(PODS, { namespace: "default", object }, new AbortController());
    const [hog, late] = await Promise.all([
      site.podIs("hog", "is evicted", isEvicted),
      site.podIs("late", "is rejected", isEvicted),
      tainted,
    ]);
    const { message = "", conditions } = hog.status ?? {};
    const words =
      /^The node was low on resource: memory\. Threshold quantity: 100Mi, available: \d+[KM]i\. Container main was using \d+[KM]i, request is 0, has larger consumption of memory\. $/;
    assert.match(message, words);
    const target = conditions?.find(({ type }) => type === "DisruptionTarget");
    assert.deepEqual([target?.status, target?.reason, target?.message], ["True", "TerminationByKubelet", message]);
    assert.match(site.log(hog), /told/);
    assert.equal(late.status?.message, "Pod was rejected: The node had condition: [MemoryPressure]. ");
    await nodeIs("has enough memory again", (node) => has("MemoryPressure", "False")(node) && !isTainted(node));
    assert.match((await explainNode()).stdout, /^ +\S+ +default\/hog +allocatableMemory\.available +The node was low/m);
  });

  test("memory that a pod frees within the grace period of a soft threshold costs no pod", async () => {
    // Between the thresholds: 300 MiB less 140 are below the soft one and above the hard one.
    const free = "until [ -e /data/free ]; do sleep 0.1; done";
    const brief = withVolume("brief", `dd if=/dev/zero bs=140M count=1 2>/dev/null | ${free}`);
    const containers = brief.spec.containers.map((one) => ({ ...one, resources: { requests: { memory: "1Mi" } } }));
    site.apply({ ...brief, spec: { ...brief.spec, containers } });
    const { metadata } = await site.podIs("brief", "is there", () => true);
    await nodeIs("has memory pressure", has("MemoryPressure", "True"));
    writeFileSync(join(site.root, "pods", metadata.uid ?? "", "volumes/kubernetes.io~empty-dir/data/free"), "");
    await nodeIs("has enough memory again", has("MemoryPressure", "False"));
    const { status } = (await site.lookAtPod("brief")) ?? {};
    assert.deepEqual([status?.phase, status?.containerStatuses?.[0]?.restartCount], ["Running", 0]);
    await site.removePods("brief");
  });

  test("process ids: the pod with most of them is evicted, and the condition with its taint falls", async () => {
    const many = `i=0; while [ $i -lt ${MANY_TASKS} ]; do sleep 3600 & i=$((i+1)); done; wait`;
    site.apply(shellPod("forks", many, { resources: { requests: { memory: "64Mi" } } }));
    const isPidTainted = ({ spec }: Node): boolean =>
      spec.taints?.some(({ key }) => key === "node.kubernetes.io/pid-pressure") ?? false;
    const tainted = nodeIs("is tainted", isPidTainted);
    await nodeIs("has PID pressure", has("PIDPressure", "True"));
    const { status } = await site.podIs("forks", "is evicted", isEvicted);
    const words = /^The node was low on resource: pids\. Threshold quantity: \d+, available: \d+\. $/;
    assert.match(status?.message ?? "", words);
    await tainted;
    await nodeIs("has process ids again", (node) => has("PIDPressure", "False")(node) && !isPidTainted(node));
  });

  test("disk: the pod that fills it is evicted, and its space is free again", async () => {
    const { bavail, bsize } = statfsSync(site.root);
    const count = Math.floor((bavail * bsize) / MI) - 15;
    site.apply(withVolume("filler", `dd if=/dev/zero of=/data/f bs=1M count=${count}`));
    const pressed = nodeIs("has disk pressure", has("DiskPressure", "True"));
    const { status } = await site.podIs("filler", "is evicted", isEvicted);
    assert.match(
      status?.message ?? "",
      /^The node was low on resource: ephemeral-storage\. Threshold quantity: 30Mi, /,
    );
    await pressed;
    await nodeIs("has space again", has("DiskPressure", "False"));
  });

  test("inodes: the pod with the many files is evicted", async () => {
    const count = statfsSync(site.root).ffree - 100;
    site.apply(withVolume("files", `i=0; while [ $i -lt ${count} ]; do : > /data/$i; i=$((i+1)); done`));
    const { status } = await site.podIs("files", "is evicted", isEvicted);
    const words = /^The node was low on resource: inodes\. Threshold quantity: 200, available: \d+\. $/;
    assert.match(status?.message ?? "", words);
  });

  test("a volume above its limit costs its pod, which was no disruption", async () => {
    const { status } = await site.podIs("over", "is evicted", isEvicted);
    assert.equal(status?.message, 'Usage of EmptyDir volume "data" exceeds the limit "8Mi". ');
    assert.equal(
      status?.conditions?.find(({ type }) => type === "DisruptionTarget"),
      undefined,
    );
  });

  test("what a container writes into its hosts file and termination log counts, and goes with the pod", async () => {
    const { status, metadata } = await site.podIs("scribe", "is evicted", isEvicted);
    const words = "Pod ephemeral local storage usage exceeds the total limit of containers 8Mi. ";
    assert.equal(status?.message, words);
    const own = join(site.root, "pods", metadata.uid ?? "");
    await until(
      "its files are removed",
      () => !["etc-hosts", "containers"].some((name) => existsSync(join(own, name))),
    );
    assert.ok(existsSync(own));
  });

  test("nobody was evicted twice, and the pod that took nothing runs on as it was", async () => {
    const now = await site.lookAtPod("kept");
    assert.equal(now?.status?.containerStatuses?.[0]?.containerID, kept.status?.containerStatuses?.[0]?.containerID);
    assert.equal(now?.status?.phase, "Running");
    const all = ["files 1", "filler 1", "forks 1", "hog 1", "late 1", "over 1", "scribe 1"];
    // Events do not wait for statuses, nor statuses for events.
    const items = await until("all are told", () => {
      const found = evictionEvents();
      return found.length >= all.length && found;
    });
    const told = items.map(({ involvedObject, count }) => `${involvedObject.name} ${count}`).sort();
    assert.deepEqual(told, all);
    const { annotations } = items.find(({ involvedObject }) => involvedObject.name === "hog")?.metadata ?? {};
    assert.equal(annotations?.["starved_resource"], "memory");
    assert.equal(annotations?.["offending_containers"], "main");
    const metrics = site.kubectl("get", "--raw", `/api/v1/nodes/${site.nodeName}/proxy/metrics`);
    const counted = [...metrics.matchAll(/^kubelet_evictions\{eviction_signal="([^"]+)"\} (\d+)$/gm)];
    assert.deepEqual(counted.map(([, signal, count]) => `${signal} ${count}`).sort(), [
      "allocatableMemory.available 1",
      "emptydirfs.limit 1",
      "ephemeralpodfs.limit 1",
      "nodefs.available 1",
      "nodefs.inodesFree 1",
      "pid.available 1",
    ]);
  });

  test("an eviction that an agent began is finished by the next one, and is the only one", async () => {
    // Below the soft threshold only, so that it has a long grace period; it does not end by itself.
    site.apply(shellPod("stubborn", holds(140)));
    const { metadata } = await site.podIs("stubborn", "runs", ({ status }) => status?.phase === "Running");
    const pod = { metadata, spec: { containers: [] } };
    await until("it is told to stop", () => /told/.test(site.log(pod)), { limitMs: 60_000 });
    const events = (): readonly Event[] =>
      evictionEvents().filter(({ involvedObject }) => involvedObject.name === "stubborn");
    // An event that was not sent ends with its agent.
    await until("its event", () => events().length > 0);
    await agent.end("SIGKILL");
    agent = await site.join(flags);
    const { status } = await site.podIs("stubborn", "is evicted", isEvicted);
    const words =
      /^The node was low on resource: memory\. Threshold quantity: 180Mi, available: \d+[KM]i\. Container main /;
    assert.match(status?.message ?? "", words);
    const state = status?.containerStatuses?.[0]?.state?.terminated;
    assert.equal(state?.exitCode, 137);
    assert.deepEqual(
      events().map(({ count }) => count),
      [1],
    );
    const now = await site.lookAtPod("kept");
    assert.equal(now?.status?.containerStatuses?.[0]?.containerID, kept.status?.containerStatuses?.[0]?.containerID);
  });
});
