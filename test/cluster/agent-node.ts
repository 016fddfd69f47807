/** The node object of an agent in a real cluster: every field, what of it is written when, and what others add to it. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { release, totalmem } from "node:os";
import { after, afterEach, before, describe, test } from "node:test";
import { connect, type PeerCertificate } from "node:tls";
import type { Node } from "../../src/model/generated/types.ts";
import { hugePageResource } from "../../src/model/machine-topology.ts";
import { amountOf, formatQuantity } from "../../src/model/quantity.ts";
import type { Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { FaultyApi } from "../support/faulty-api.ts";

skipWithoutCluster();

/** The node looks at itself every second; unchanged it says nothing for an hour. */
const FAST = { nodeStatusUpdateFrequency: "1s", nodeStatusReportFrequency: "1h" };
/** A release that keeps what nodes declare. */
const DECLARES_SINCE = 36;
const DONGLE = "example.com/dongle";

describe("the node of an agent", () => {
  let site: ClusterSite;
  let api: FaultyApi;
  let agent: Program;
  let minor: number;
  before(async () => {
    site = await ClusterSite.start();
    const subject = { commonName: `system:node:${site.nodeName}`, organizations: ["system:nodes"] };
    api = await FaultyApi.start(site.plane.url, site.plane.authority, site.plane.authority.client(subject));
    minor = site.serverMinor();
    agent = await site.join([`--api-servers=${api.url}`, site.config(FAST), "--node-labels=example.com/rack=r1"]);
    await site.nodeReady();
  });
  afterEach(() => assert.ok(!agent.isOver, agent.stderr.slice(-3000)));
  after(async () => {
    await api?.stop();
    await site?.close();
  });

  /** Waits for a node that looks as wanted. */
  const nodeIs = (what: string, isWanted: (node: Node) => boolean): Promise<Node> =>
    until(
      `the node ${what}`,
      async () => {
        const node = await site.lookAtNode();
        return node !== undefined && isWanted(node) && node;
      },
      { seen: () => [site.node(), agent.stderr.slice(-2000)] },
    );
  const statusPatches = (since: number): string[] =>
    api.seen.slice(since).filter((line) => /^(PATCH|PUT) .*\/status/.test(line));
  const remove = (...names: readonly string[]): Promise<void> => site.removePods(...names);

  test("every field tells of the machine, the runtime and the agent", async () => {
    const { metadata, status } = await nodeIs("has its images", ({ status: is }) => (is?.images ?? []).length > 0);
    const read = (path: string): string => readFileSync(path, "utf8").trim();
    const { nodeInfo } = status ?? {};
    assert.equal(nodeInfo?.bootID, read("/proc/sys/kernel/random/boot_id"));
    assert.equal(nodeInfo?.kernelVersion, release());
    assert.equal(nodeInfo?.operatingSystem, "linux");
    assert.equal(nodeInfo?.architecture, metadata.labels?.["kubernetes.io/arch"]);
    assert.ok(read("/etc/os-release").includes(nodeInfo?.osImage ?? "missing"));
    assert.match(nodeInfo?.containerRuntimeVersion ?? "", new RegExp(`^containerd://v?${site.containerd.version}\\.`));
    assert.match(nodeInfo?.kubeletVersion ?? "", /^v1\.\d+\.\d+$/);
    assert.deepEqual(
      status?.addresses?.map(({ type }) => type),
      ["InternalIP", "Hostname"],
    );
    assert.equal(status?.addresses?.[1]?.address, site.nodeName);
    assert.equal(status?.daemonEndpoints?.kubeletEndpoint?.Port, portOf(agent));
    const kib = Number(status?.capacity?.["memory"]?.replace("Ki", ""));
    assert.ok(Math.abs(kib * 1024 - totalmem()) < totalmem() / 100, status?.capacity?.["memory"]);
    const free = Number(status?.allocatable?.["memory"]?.replace("Ki", ""));
    assert.equal(kib - free, 100 * 1024, "the hard threshold of 100Mi is taken off");
    assert.ok(status?.capacity?.["ephemeral-storage"] !== undefined);
    assert.ok(status?.images?.some(({ names }) => names?.includes(TEST_IMAGES.busybox)));
    assert.equal(status?.volumesInUse, undefined);
    if (Number(site.containerd.version.split(".")[0]) >= 2) {
      assert.ok(status?.runtimeHandlers?.some(({ name }) => name === "runc"));
      assert.deepEqual(status?.features, { supplementalGroupsPolicy: true });
    }
    const declared = [
      "InPlacePodLevelResourcesVerticalScaling",
      "InPlacePodVerticalScalingInitContainers",
      "RestartAllContainersOnContainerExits",
    ];
    assert.deepEqual(status?.declaredFeatures, minor >= DECLARES_SINCE ? declared : undefined);
  });

  test("what has not changed is not written again, whatever the server dropped of it", async () => {
    site.apply(testPod("quiet"));
    const before = await site.podReady("quiet");
    // What there is to tell has been told when nothing came for a while.
    for (let told = -1; told !== statusPatches(0).length; await pause(4000)) told = statusPatches(0).length;
    const since = api.seen.length;
    // Each label makes the agent look at the pod again; meanwhile the node is looked at every second.
    for (let round = 0; round < 6; round++) {
      site.kubectl("label", "pod", "quiet", `round=${round}`, "--overwrite");
      await pause(1000);
    }
    assert.deepEqual(statusPatches(since), []);
    // Not the whole status: an old server takes fields away when somebody else writes the pod.
    assert.deepEqual(site.pod("quiet")?.status?.conditions, before.status?.conditions);
    await remove("quiet");
  });

  test("an extended resource that is patched into the capacity becomes allocatable", async () => {
    const patch = JSON.stringify({ status: { capacity: { [DONGLE]: "1" } } });
    site.kubectl("patch", "node", site.nodeName, "--subresource=status", "--type=merge", "-p", patch);
    const node = await nodeIs("offers it", ({ status }) => status?.allocatable?.[DONGLE] === "1");
    assert.equal(node.status?.capacity?.[DONGLE], "1");
    const since = api.seen.length;
    await pause(3000);
    assert.deepEqual(statusPatches(since), []);
  });

  test("huge pages of each size of the kernel are told, also by kubectl describe; another size goes", async () => {
    const directory = "/sys/kernel/mm/hugepages";
    const pools = readdirSync(directory).map((name) => {
      const bytes = Number(/\d+/.exec(name)?.[0]) * 1024;
      const pages = Number(readFileSync(`${directory}/${name}/nr_hugepages`, "utf8"));
      return [hugePageResource(bytes), formatQuantity(amountOf(bytes * pages, "binary"))] as const;
    });
    assert.ok(pools.length > 0, "the kernel has huge pages");
    const { status } = (await site.lookAtNode()) ?? {};
    for (const [name, amount] of pools) {
      assert.deepEqual([status?.capacity?.[name], status?.allocatable?.[name]], [amount, amount]);
      const lines = site.kubectl("describe", "node", site.nodeName).match(new RegExp(`${name}: +${amount}$`, "gm"));
      assert.equal(lines?.length, 2, name);
    }
    const added = ["capacity", "allocatable"].map((side) => ({
      op: "add",
      path: `/status/${side}/hugepages-3Mi`,
      value: "9Mi",
    }));
    const patch = ["--subresource=status", "--type=json", `-p=${JSON.stringify(added)}`];
    site.kubectl("patch", "node", site.nodeName, ...patch);
    await nodeIs("has no pages of 3Mi", ({ status: is }) => is?.capacity?.["hugepages-3Mi"] === undefined);
  });

  test("the limits of all pods, and an old cgroup version, are told in events", async () => {
    site.apply(testPod("limited", { nodeName: site.nodeName }));
    await site.podReady("limited");
    await until("the event", () => /NodeAllocatableEnforced/.test(site.kubectl("get", "events")));
    const hasV2 = existsSync("/sys/fs/cgroup/cgroup.controllers");
    assert.equal(/CgroupV1/.test(site.kubectl("get", "events")), !hasV2);
    await remove("limited");
  });

  test("a label of the system that somebody takes away comes back", async () => {
    site.kubectl("label", "node", site.nodeName, "kubernetes.io/os-");
    await nodeIs("has its label", ({ metadata }) => metadata.labels?.["kubernetes.io/os"] === "linux");
  });

  test("being closed for new pods and opened again is told in events", async () => {
    const said = (reason: string) => () => site.kubectl("get", "events").includes(` ${reason} `);
    site.kubectl("cordon", site.nodeName);
    await until("that it is closed", said("NodeNotSchedulable"), { seen: () => site.kubectl("get", "events") });
    site.kubectl("uncordon", site.nodeName);
    await until("that it is open", said("NodeSchedulable"), { seen: () => site.kubectl("get", "events") });
  });

  test("a pod that needs a declared feature is scheduled here, and gets it", { timeout: 180_000 }, async (t) => {
    if (minor < DECLARES_SINCE) return t.skip(`1.${minor} knows no declared features`);
    const shell = (script: string): object => ({
      image: TEST_IMAGES.busybox,
      imagePullPolicy: "Never",
      command: ["/bin/sh", "-c", script],
    });
    const rule = { action: "RestartAllContainers", exitCodes: { operator: "In", values: [42] } };
    const once =
      "n=$(ls /flag | wc -l); touch /flag/$n; until [ -e /both/up ]; do sleep 0.1; done; sleep 1; [ $n = 0 ] && exit 42; exec sleep 3600";
    const both = { name: "both", mountPath: "/both" };
    const mounted = { volumeMounts: [{ name: "flag", mountPath: "/flag" }, both] };
    const other = { ...shell("touch /both/up; exec sleep 3600"), name: "other", volumeMounts: [both] };
    const source = { ...shell(once), ...mounted, name: "main", restartPolicy: "Never", restartPolicyRules: [rule] };
    site.apply(
      testPod("together", {
        terminationGracePeriodSeconds: 1,
        volumes: ["flag", "both"].map((name) => ({ name, emptyDir: {} })),
        containers: [source, other],
      }),
    );
    await site.podIs("together", "has restarted as a whole", ({ status }) => {
      const all = status?.containerStatuses ?? [];
      return all.length === 2 && all.every(({ restartCount, ready }) => restartCount === 1 && ready);
    });
    await remove("together");
  });

  test("a pod bound by a label that was set while the agent was down is admitted by the next start", async () => {
    await agent.end("SIGTERM");
    site.kubectl("label", "node", site.nodeName, "example.com/zone=z1");
    const names = ["z1", "z2", "z3"];
    for (const name of names) {
      site.apply(testPod(name, { nodeName: site.nodeName, nodeSelector: { "example.com/zone": "z1" } }));
    }
    agent = await site.join([`--api-servers=${api.url}`, site.config(FAST)]);
    for (const name of names) await site.podReady(name);
    for (const name of names) await remove(name);
  });

  test("another start with other flags keeps the node ready, and what others did to it, and takes the given address", async () => {
    const before = site.node();
    site.kubectl("taint", "node", site.nodeName, "example.com/theirs=yes:PreferNoSchedule");
    site.kubectl("label", "node", site.nodeName, "example.com/theirs=yes", "kubernetes.io/arch=pdp11", "--overwrite");
    await agent.end("SIGTERM");
    const address = before?.status?.addresses?.[0]?.address ?? "";
    const flags = [`--node-ip=${address}`, "--register-with-taints=example.com/late=yes:NoSchedule"];
    agent = await site.join([`--api-servers=${api.url}`, site.config({ ...FAST, maxPods: 7 }), ...flags]);
    const node = await nodeIs("has its new capacity", ({ status }) => status?.capacity?.["pods"] === "7");
    assert.equal(node.metadata.uid, before?.metadata.uid);
    assert.equal(node.metadata.labels?.["example.com/theirs"], "yes");
    assert.equal(node.metadata.labels?.["kubernetes.io/arch"], before?.metadata.labels?.["kubernetes.io/arch"]);
    assert.deepEqual(
      node.spec.taints?.map(({ key }) => key),
      ["example.com/theirs"],
    );
    assert.equal(node.status?.addresses?.[0]?.address, address);
    const ready = (is: Node | undefined): string | undefined =>
      is?.status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime;
    assert.equal(ready(node), ready(before));
    site.kubectl("taint", "node", site.nodeName, "example.com/theirs-");
  });

  test("with serverTLSBootstrap it serves the certificate that the cluster signs, once somebody approves", async () => {
    await agent.end("SIGTERM");
    agent = await site.join([site.config({ ...FAST, serverTLSBootstrap: true })]);
    const request = await until(
      "its request",
      () => {
        const names = site.kubectl(
          ...["get", "csr", "--field-selector=spec.signerName=kubernetes.io/kubelet-serving", "-o", "name"],
        );
        return names !== "" && names.trim();
      },
      { limitMs: 90_000, seen: () => agent.stderr.slice(-2000) },
    );
    site.kubectl("certificate", "approve", request.replace(/^.*\//, ""));
    const served = await until(
      "its certificate",
      () =>
        certificateOf(portOf(agent)).then(
          (found) => found.issuer?.CN === "kubelet-ts-test-authority" && found,
          () => undefined,
        ),
      { seen: () => agent.stderr.slice(-2000) },
    );
    assert.equal(served.subject.CN, `system:node:${site.nodeName}`);
    const address = site.node()?.status?.addresses?.[0]?.address ?? "missing";
    assert.ok(served.subjectaltname?.includes(`IP Address:${address}`), served.subjectaltname);
  });
});

function portOf(agent: Program): number {
  return Number(/ --port=(\d+)/.exec(agent.child.spawnargs.join(" "))?.[1]);
}

/** What the agent shows of itself on its main port. */
function certificateOf(port: number): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.on("error", reject);
  });
}
