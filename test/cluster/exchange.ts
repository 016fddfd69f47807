/**
 * The exchange of the original kubelet for this agent and back, on one node with 30 pods of the API server and some of
 * manifest files: no container is restarted, no pod flips its readiness, no startup probe runs again.
 */
import assert from "node:assert/strict";
import { existsSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { ContainerStatus, Pod } from "../../src/model/generated/types.ts";
import { KUBELET, Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, FOREVER, isReady, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { freePort } from "../support/free-port.ts";
import { goKubelet, makeCgroup, savedSysctls, skipWithoutGoKubelet } from "../support/go-kubelet.ts";

skipWithoutCluster();
skipWithoutGoKubelet();

const PODS = 30;
/** Long enough for every probe to fail as often as its threshold, and for a pod that was doubted to be restarted. */
const SETTLE_MS = 8000;

const image = { image: TEST_IMAGES.busybox, imagePullPolicy: "Never" };
const data = { name: "data", mountPath: "/data" };
/** A server that does not answer for a moment on a busy machine has not failed. */
const often = { periodSeconds: 1, failureThreshold: 2, timeoutSeconds: 3 };
const http = { httpGet: { path: "/", port: 8080 } };
const serve = ["/bin/sh", "-c", "echo ok > /data/index.html; exec httpd -f -p 8080 -h /data"];
/** Succeeds once in the life of a pod: a second startup would kill the container. */
const once = { exec: { command: ["/bin/sh", "-c", "[ ! -e /data/started ] && : > /data/started"] } };
const server = { ...image, name: "main", command: serve, volumeMounts: [data] };
const idle = { ...image, name: "main", command: FOREVER, volumeMounts: [data] };
/** Its one attempt has time: 30 pods start at once. */
const startupOnce = { startupProbe: { ...once, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 30 } };

/** What the pods are, in turn. */
const KINDS: readonly object[] = [
  { containers: [idle] },
  { containers: [{ ...server, readinessProbe: { ...http, ...often } }] },
  { containers: [{ ...server, ...startupOnce, readinessProbe: { ...http, ...often } }] },
  { containers: [{ ...server, livenessProbe: { ...http, ...often }, readinessProbe: { tcpSocket: { port: 8080 } } }] },
  {
    initContainers: [{ ...image, name: "first", command: ["/bin/true"] }],
    containers: [idle, { ...idle, name: "second" }],
  },
  {
    initContainers: [{ ...idle, ...startupOnce, name: "sidecar", restartPolicy: "Always" }],
    containers: [{ ...server, ...startupOnce, startupProbe: { ...http, periodSeconds: 1 } }],
  },
];

/** The original makes a socket of device plugins there, whatever its root directory is. */
const FIXED_DIR = "/var/lib/kubelet";
const hadFixedDir = existsSync(FIXED_DIR);

const podName = (index: number): string => `web-${index}`;

function makePod(index: number): Pod {
  const pod = testPod(podName(index), {
    ...KINDS[index % KINDS.length],
    volumes: [{ name: "data", emptyDir: {} }],
    ...(index % 5 === 0 ? { securityContext: { fsGroup: 2000 } } : {}),
  });
  return { ...pod, metadata: { ...pod.metadata, labels: { app: "web" } } };
}

/** Manifests of the node itself; their UIDs are computed by whoever reads them. */
const STATIC: readonly Pod[] = [
  staticPod("static-plain", { containers: [idle] }),
  staticPod("static-probed", {
    containers: [
      {
        ...server,
        startupProbe: { ...http, ...often },
        livenessProbe: { ...http, ...often },
        resources: { requests: { cpu: "10m", memory: "8Mi" }, limits: { memory: "64Mi" } },
      },
    ],
    priorityClassName: "system-node-critical",
  }),
];

function staticPod(name: string, spec: object): Pod {
  const pod = testPod(name, { ...spec, volumes: [{ name: "data", emptyDir: {} }] });
  return { ...pod, metadata: { ...pod.metadata, labels: { app: "static" } } };
}

/** Everything of a pod that an exchange must not change. */
function facts({ metadata, status }: Pod): object {
  const container = ({ name, containerID, restartCount, ready, started, state }: ContainerStatus): object => ({
    name,
    containerID,
    restartCount,
    ready,
    started,
    since: state?.running?.startedAt,
  });
  return {
    uid: metadata.uid,
    ip: status?.podIP,
    phase: status?.phase,
    conditions: status?.conditions?.map(({ type, status: is, lastTransitionTime }) => [type, is, lastTransitionTime]),
    containers: [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].map(container),
  };
}

const byName = (pods: readonly Pod[]): Record<string, object> =>
  Object.fromEntries(pods.map((pod) => [pod.metadata.name ?? "", facts(pod)]));

/** The mirror of each static pod, and which containers it has: a kubelet knows nothing of their readiness at first. */
const instances = (pods: readonly Pod[]): Record<string, object> =>
  Object.fromEntries(
    pods.map(({ metadata, status }) => [
      metadata.name ?? "",
      [metadata.uid, status?.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount])],
    ]),
  );

describe("the original kubelet and this agent take turns on one node", () => {
  let site: ClusterSite;
  let agent: Program;
  let config: string;
  let first: Record<string, object>;
  let firstStatic: Record<string, object>;
  let turn = 0;
  const restoreSysctls = savedSysctls();

  /** One configuration for both programs: only the program is exchanged. */
  async function launch(program: string): Promise<void> {
    const subject = { commonName: `system:node:${site.nodeName}`, organizations: ["system:nodes"] };
    const kubeconfig = site.plane.writeKubeconfig(site.nodeName, subject);
    const place = [`--root-dir=${site.root}`, `--cert-dir=${join(site.dir, "pki")}`, `--config=${config}`];
    agent = new Program([program, ...place, `--kubeconfig=${kubeconfig}`, `--hostname-override=${site.nodeName}`]);
  }

  async function exchange(program: string): Promise<void> {
    await agent.end("SIGTERM");
    await launch(program);
    // A pod that only the new one can have started: by then it has seen all the others.
    const name = `turn-${++turn}`;
    site.apply(testPod(name));
    await site.podReady(name);
    await pause(SETTLE_MS);
    assert.ok(!agent.isOver, agent.stderr.slice(-3000));
    assert.deepEqual(byName(site.pods("app=web")), first);
    assert.deepEqual(instances(site.pods("app=static")), firstStatic);
  }

  before(async () => {
    site = await ClusterSite.start();
    makeCgroup(site.containerd.cgroupParent);
    config = join(site.dir, "exchanged.json");
    writeFileSync(
      config,
      JSON.stringify({
        apiVersion: "kubelet.config.k8s.io/v1beta1",
        kind: "KubeletConfiguration",
        port: await freePort(),
        containerRuntimeEndpoint: site.containerd.endpoint,
        cgroupDriver: "cgroupfs",
        cgroupRoot: site.containerd.cgroupParent,
        failSwapOn: false,
        failCgroupV1: false,
        resolvConf: "",
        makeIPTablesUtilChains: false,
        volumePluginDir: join(site.dir, "plugins"),
        enforceNodeAllocatable: [],
        healthzPort: await freePort(),
        readOnlyPort: 0,
        maxPods: 60,
        staticPodPath: site.manifests,
        podLogsDir: join(site.dir, "logs"),
        fileCheckFrequency: "1s",
        authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
        authorization: { mode: "AlwaysAllow" },
        evictionHard: { "memory.available": "1Mi" },
      }),
    );
    for (const pod of STATIC) writeFileSync(join(site.manifests, `${pod.metadata.name}.json`), JSON.stringify(pod));
    await launch(goKubelet() ?? "");
    const died = agent.ended.then(({ stderr }) => assert.fail(`the kubelet ended:\n${stderr.slice(-3000)}`));
    died.catch(() => undefined);
    await Promise.race([site.nodeReady(), died]);
    site.create(Array.from({ length: PODS }, (_, index) => makePod(index)));
    const ready = (): boolean => site.pods("app=web").filter(isReady).length === PODS;
    await until("all pods are ready", ready, { limitMs: 180_000, seen: () => site.kubectl("get", "pods") });
    const staticReady = (): boolean => site.pods("app=static").filter(isReady).length === STATIC.length;
    await until("the static pods are ready", staticReady, {
      limitMs: 180_000,
      seen: () => site.kubectl("get", "pods"),
    });
    // What is read now must not be about to change: statuses are written every second at most.
    await pause(3000);
    first = byName(site.pods("app=web"));
    firstStatic = instances(site.pods("app=static"));
    assert.equal(Object.keys(first).length, PODS);
  });
  after(async () => {
    await agent?.end("SIGKILL");
    restoreSysctls();
    await site?.close();
    if (hadFixedDir || !existsSync(FIXED_DIR)) return;
    rmSync(join(FIXED_DIR, "device-plugins"), { recursive: true, force: true });
    rmdirSync(FIXED_DIR);
  });

  test("this agent takes over from the original", { timeout: 180_000 }, async () => {
    await exchange(KUBELET);
  });

  test("the original takes over from this agent", { timeout: 180_000 }, async () => {
    await exchange(goKubelet() ?? "");
  });

  test("this agent removes what the original has started, and nothing is left of it", {
    timeout: 180_000,
  }, async () => {
    await exchange(KUBELET);
    for (const { metadata } of STATIC) rmSync(join(site.manifests, `${metadata.name}.json`));
    site.kubectl("delete", "pods", "--all", "--wait=false");
    await until("no pods are left", () => site.pods().length === 0, { limitMs: 120_000 });
    // A mirror goes with its manifest, the containers of the static pod after their grace period.
    let left: readonly string[] = [];
    await until("nothing runs", async () => (left = await site.tasks()).length === 0, { seen: () => left });
  });
});
