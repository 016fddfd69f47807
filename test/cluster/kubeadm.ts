/**
 * A cluster made by kubeadm with this agent as the kubelet of its nodes: init, join, upgrade and reset, each node in
 * namespaces of its own, the control plane, kube-proxy and CoreDNS as pods.
 */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { messageOf } from "../../src/lib/errors.ts";
import type { Node, Pod } from "../../src/model/generated/types.ts";
import { KUBELET } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { FOREVER, isReady, skipWithoutCluster } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { kubeBinDir } from "../support/control-plane.ts";
import { goKubelet, savedSysctls, skipWithoutGoKubelet } from "../support/go-kubelet.ts";
import { IMAGE_REPOSITORY, imagePrograms, writeImages } from "../support/kubeadm-images.ts";
import { KubeadmNode } from "../support/kubeadm-node.ts";
import { NodeMachine } from "../support/node-machine.ts";

skipWithoutCluster();
skipWithoutKubeadm();
skipWithoutGoKubelet();

const LIMIT = { timeout: 300_000 };
const SERVICE = "web.default.svc.cluster.local";
const IGNORE = "--ignore-preflight-errors=all";

/** As a user would write it; only what this machine needs is set. */
const CONFIG = (address: string, version: string): readonly object[] => [
  {
    apiVersion: "kubeadm.k8s.io/v1beta4",
    kind: "InitConfiguration",
    localAPIEndpoint: { advertiseAddress: address },
  },
  {
    apiVersion: "kubeadm.k8s.io/v1beta4",
    kind: "ClusterConfiguration",
    kubernetesVersion: version,
    imageRepository: IMAGE_REPOSITORY,
    networking: { podSubnet: "10.244.0.0/16" },
    // A busy machine costs them their leases, and without one they exit: a restart that no kubelet caused.
    controllerManager: { extraArgs: [{ name: "leader-elect", value: "false" }] },
    scheduler: { extraArgs: [{ name: "leader-elect", value: "false" }] },
  },
  {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    cgroupDriver: "cgroupfs",
    failSwapOn: false,
    failCgroupV1: false,
    evictionHard: { "memory.available": "1Mi" },
  },
  {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    // The limits of connection tracking belong to the machine, not to the network of a node.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  },
];

describe("a cluster that kubeadm makes", () => {
  const dir = mkdtempSync(join(tmpdir(), "ka-"));
  const restoreSysctls = savedSysctls();
  let first: KubeadmNode;
  let second: KubeadmNode;

  const get = async <T>(...what: readonly string[]): Promise<T> =>
    JSON.parse((await first.kubectl("get", ...what, "-o", "json")).stdout) as T;
  const pods = async (...where: readonly string[]): Promise<readonly Pod[]> =>
    (await get<{ items: Pod[] }>("pods", ...where)).items;
  const seen = (): string => `${first.machine.runSync("sh", "-c", SHOW)}\n${first.logs()}\n${second.logs()}`;
  /** Waits for so many ready pods with this label. */
  const ready = (namespace: string, label: string, count: number): Promise<readonly Pod[]> =>
    until(
      `${count} pods ${label} are ready`,
      async () => {
        const all = await pods("-n", namespace, "-l", label);
        return all.length === count && all.every(isReady) && all;
      },
      { limitMs: 120_000, seen },
    );
  const nodeReady = (name: string): Promise<Node> =>
    until(
      `node ${name} is ready`,
      async () => {
        const { items } = await get<{ items: Node[] }>("nodes");
        const node = items.find(({ metadata }) => metadata.name === name);
        return node?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") && node;
      },
      { limitMs: 120_000, seen },
    );

  before(async () => {
    first = await KubeadmNode.start("first", "10.123.0.1");
    second = await KubeadmNode.start("second", "10.123.0.2");
    NodeMachine.connect([first.machine, `${first.address}/24`], [second.machine, `${second.address}/24`]);
    for (const [node, other] of [[first, second] as const, [second, first] as const])
      node.machine.runSync("ip", "route", "add", "default", "via", other.address);
    const version = (await first.kubeadm("version", "-o", "short")).stdout.trim();
    const config = CONFIG(first.address, version).map((part) => JSON.stringify(part));
    first.machine.write("/etc/kubeadm.yaml", config.join("\n---\n"));
    const { stdout } = await first.kubeadm("config", "images", "list", "--config=/etc/kubeadm.yaml");
    const images = stdout.trim().split("\n");
    const sandboxImage = images.find((name) => name.includes("/pause:")) ?? "";
    await Promise.all([first.startRuntime(sandboxImage), second.startRuntime(sandboxImage)]);
    const archives = writeImages([...images, TEST_IMAGES.busybox], dir);
    const onEveryNode = ["pause", "kube-proxy", "coredns", "busybox"].map((name) => archives.get(name) ?? "");
    await Promise.all([first.importImages([...archives.values()]), second.importImages(onEveryNode)]);
  });
  after(async () => {
    await Promise.all([first?.stop(), second?.stop()]);
    restoreSysctls();
    await rm(dir, { recursive: true, force: true });
  });

  test("init: the control plane runs as static pods, with kube-proxy and CoreDNS", LIMIT, async (t) => {
    const began = performance.now();
    await first.kubeadm("init", "--config=/etc/kubeadm.yaml", IGNORE);
    t.diagnostic(`kubeadm init took ${Math.round(performance.now() - began)} ms`);
    await ready("kube-system", "tier=control-plane", 4);
    await ready("kube-system", "k8s-app=kube-proxy", 1);
    await nodeReady("first");
    await ready("kube-system", "k8s-app=kube-dns", 2);
  });

  test("join: a second node with the command that kubeadm prints", LIMIT, async () => {
    const { stdout } = await first.kubeadm("token", "create", "--print-join-command");
    const [program = "", ...args] = stdout.trim().split(/\s+/);
    assert.equal(program, "kubeadm");
    await second.kubeadm(...args, IGNORE);
    const [one, two] = [await nodeReady("first"), await nodeReady("second")];
    await ready("kube-system", "k8s-app=kube-proxy", 2);
    for (const [node, gateway] of [[first, two] as const, [second, one] as const]) {
      const via = gateway.status?.addresses?.find(({ type }) => type === "InternalIP")?.address ?? "";
      node.machine.runSync("ip", "route", "add", gateway.spec.podCIDR ?? "", "via", via);
    }
  });

  test("a Deployment behind a Service is reached by its name from pods of both nodes", LIMIT, async () => {
    first.machine.write("/etc/web.json", JSON.stringify({ apiVersion: "v1", kind: "List", items: WORKLOAD }));
    await first.kubectl("apply", "-f", "/etc/web.json");
    const web = await ready("default", "app=web", 2);
    assert.deepEqual(new Set(web.map(({ spec }) => spec.nodeName)), new Set(["second"]), "the first node is tainted");
    for (const { metadata, spec } of await ready("default", "app=client", 2)) {
      // Not with wget's own time limit: Debian's static busybox crashes on it.
      const wget = ["exec", metadata.name ?? "", "--", "timeout", "5", "wget", "-q", "-O", "-", `http://${SERVICE}/`];
      let refused = "";
      const answer = await until(
        `the Service answers on ${spec.nodeName}`,
        () =>
          first.kubectl(...wget).then(
            ({ stdout }) => stdout,
            (error: unknown) => void (refused = messageOf(error)),
          ),
        { limitMs: 60_000, seen: () => `${refused}\n${seen()}` },
      );
      assert.match(answer, /^web-/);
    }
  });

  /** Which containers all pods have, and which objects show them. */
  const instances = async (): Promise<object[]> =>
    (await pods("-A")).map(({ metadata, status }) => ({
      name: metadata.name,
      uid: metadata.uid,
      containers: status?.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount]),
    }));
  let turn = 0;
  /** Restarts the kubelet of a node, and waits for a pod that only the new one can have started. */
  const restartKubelet = async (node: KubeadmNode): Promise<void> => {
    node.machine.runSync("systemctl", "restart", "kubelet");
    const app = `turn-${++turn}`;
    const spec = { nodeName: node.name, terminationGracePeriodSeconds: 0, containers: [IDLE] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: app, labels: { app } }, spec };
    first.machine.write("/etc/turn.json", JSON.stringify(pod));
    await first.kubectl("apply", "-f", "/etc/turn.json");
    await ready("default", `app=${app}`, 1);
    await first.kubectl("delete", "pod", app, "--force");
  };

  test("upgrade node: no container is restarted, and the nodes stay ready", LIMIT, async () => {
    const began = await instances();
    for (const node of [first, second]) {
      await node.kubeadm("upgrade", "node", IGNORE);
      await restartKubelet(node);
    }
    assert.deepEqual(await instances(), began, seen());
    await nodeReady("first");
    await nodeReady("second");
  });

  test("the original kubelet takes over, and this agent again: no container is restarted", LIMIT, async () => {
    const began = await instances();
    for (const program of [goKubelet() ?? "", KUBELET]) {
      for (const node of [first, second]) {
        node.machine.runSync("ln", "-sf", program, "/usr/bin/kubelet");
        await restartKubelet(node);
      }
      assert.deepEqual(await instances(), began, `${program}\n${seen()}`);
    }
  });

  test("reset: nothing runs any more, and nothing is left mounted", LIMIT, async () => {
    for (const node of [second, first]) {
      await node.kubeadm("reset", "--force");
      await until(`no container runs on ${node.name}`, async () => (await node.running()).length === 0, { seen });
      const { stdout } = await node.machine.run("sh", "-c", "ps -eo args; cat /proc/mounts");
      assert.doesNotMatch(stdout, /kubelet --|\/var\/lib\/kubelet\/pods/);
    }
  });
});

const IDLE = { ...shell(""), command: FOREVER };

/** Two pods that say who they are, a Service for them, and a client on each node. */
const WORKLOAD: readonly object[] = [
  workload("Deployment", "web", {
    replicas: 2,
    containers: [
      shell("mkdir /www; hostname > /www/index.html; exec busybox httpd -f -p 8080 -h /www", {
        readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 },
      }),
    ],
  }),
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web" },
    spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: 8080 }] },
  },
  workload("DaemonSet", "client", {
    containers: [IDLE],
    tolerations: [{ operator: "Exists" }],
  }),
];

function shell(script: string, more: object = {}): object {
  return { name: "main", image: TEST_IMAGES.busybox, command: ["/bin/sh", "-c", script], ...more };
}

function workload(
  kind: string,
  app: string,
  { replicas, ...spec }: { replicas?: number; containers: object[]; tolerations?: object[] },
): object {
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { name: app },
    spec: {
      ...(replicas === undefined ? {} : { replicas }),
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { terminationGracePeriodSeconds: 1, ...spec } },
    },
  };
}

const SHOW =
  "kubectl --kubeconfig=/etc/kubernetes/admin.conf get nodes,pods -A -o wide; kubectl --kubeconfig=/etc/kubernetes/admin.conf get events -A | tail -n 30";

function skipWithoutKubeadm(): void {
  const needed = [...Object.values(imagePrograms()), ...["kubeadm", "kubectl"].map((name) => join(kubeBinDir(), name))];
  const missing = needed.filter((path) => !existsSync(path));
  if (missing.length === 0) return;
  process.stdout.write(`not built: ${missing.join(", ")}\n`);
  process.exit(77);
}
