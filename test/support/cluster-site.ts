import type { SpawnOptions } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiError, type KubeApi, type ObjectRef, type Resource } from "../../src/adapters/kubeapi/index.ts";
import { LEASES, NODES, PODS, SERVICE_ACCOUNTS } from "../../src/adapters/kubeapi/resources.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import type { Lease, Node, Pod } from "../../src/model/generated/types.ts";
import { KUBELET, Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { TEST_IMAGES, TestContainerd, type TestContainerdOptions, whyNoContainerd } from "./containerd.ts";
import { type ControlPlaneOptions, skipWithoutControlPlane, TestControlPlane } from "./control-plane.ts";
import { freePort } from "./free-port.ts";

/** Ends this process with the runner's word for "not here" unless a cluster with an agent can be started. */
export function skipWithoutCluster(): void {
  skipWithoutControlPlane();
  const reason = whyNoContainerd();
  if (reason === undefined) return;
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

/** Renewed every two seconds instead of ten: tests wait for renewals. */
const CONFIG = {
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  nodeLeaseDurationSeconds: 8,
};
const never = { signal: manyListeners().signal };

/** Runs until it is told to stop, and then ends at once. */
export const FOREVER = ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"];

/** A real control plane, a real containerd and agents that join; `close` leaves nothing behind. */
export class ClusterSite {
  readonly dir = mkdtempSync(join(tmpdir(), "kc-"));
  readonly manifests = join(this.dir, "m");
  readonly root = join(this.dir, "r");
  readonly nodeName = "node-a";
  private readonly agents: Program[] = [];
  private readonly admin: KubeApi;

  private constructor(
    readonly plane: TestControlPlane,
    readonly containerd: TestContainerd,
    private readonly options: ControlPlaneOptions,
  ) {
    mkdirSync(this.manifests);
    this.admin = plane.clients().calls;
  }

  static async start(
    options: ControlPlaneOptions = { controllers: true, scheduler: true },
    runtime: TestContainerdOptions = {},
  ): Promise<ClusterSite> {
    const [plane, containerd] = await Promise.allSettled([
      TestControlPlane.start(options),
      TestContainerd.start(runtime),
    ]);
    if (plane.status === "fulfilled" && containerd.status === "fulfilled")
      return new ClusterSite(plane.value, containerd.value, options);
    if (plane.status === "fulfilled") await plane.value.stop();
    if (containerd.status === "fulfilled") await containerd.value.stop();
    throw plane.status === "rejected" ? plane.reason : containerd.status === "rejected" ? containerd.reason : undefined;
  }

  /** Starts an agent as a node with a certificate of its own; the same node again unless told otherwise. */
  async join(flags: readonly string[] = [], options: SpawnOptions = {}): Promise<Program> {
    const name = this.nodeName;
    const subject = { commonName: `system:node:${name}`, organizations: ["system:nodes"] };
    return this.launch([`--kubeconfig=${this.plane.writeKubeconfig(name, subject)}`, ...flags], options);
  }

  /** Writes a configuration file, with these fields beside the site's own, and answers with the flag for it. */
  config(fields: object = {}): string {
    const path = join(this.dir, "kubelet-config.json");
    writeFileSync(path, JSON.stringify({ ...CONFIG, ...fields }));
    return `--config=${path}`;
  }

  /** Starts an agent with these flags beside the ones that keep it to this site. */
  async launch(flags: readonly string[], options: SpawnOptions = {}): Promise<Program> {
    const place = [
      ...[`--hostname-override=${this.nodeName}`, `--root-dir=${this.root}`, `--cert-dir=${join(this.dir, "pki")}`],
      ...[`--container-runtime-endpoint=${this.containerd.endpoint}`, `--cgroup-root=${this.containerd.cgroupParent}`],
      "--make-iptables-util-chains=false",
      ...[`--pod-manifest-path=${this.manifests}`, `--healthz-port=${await freePort()}`, `--port=${await freePort()}`],
      ...[
        `--pod-logs-dir=${join(this.dir, "logs")}`,
        "--fail-swap-on=false",
        "--resolv-conf=",
        "--read-only-port=0",
        "--v=2",
      ],
    ];
    if (!flags.some((flag) => flag.startsWith("--config="))) place.push(this.config());
    const program = new Program([KUBELET, ...place, ...flags], options);
    this.agents.push(program);
    return program;
  }

  /** An agent that ended by itself will not do what is waited for. */
  private checkAgent(): void {
    const newest = this.agents.at(-1);
    if (newest?.isOver) throw new Error(`the agent ended:\n${newest.stderr.slice(-3000)}`);
  }

  kubectl(...args: readonly string[]): string {
    return this.plane.kubectl(...args);
  }

  /** The minor release of the API server, such as 36. */
  serverMinor(): number {
    const { serverVersion } = JSON.parse(this.kubectl("version", "-o", "json")) as { serverVersion: { minor: string } };
    return Number.parseInt(serverVersion.minor, 10);
  }

  /** Applies a manifest, given as an object. */
  apply(object: object): void {
    this.kubectl("apply", "-f", this.manifest(object));
  }

  /** Creates many objects: half the calls of `apply`. */
  create(items: readonly object[]): void {
    this.kubectl("create", "-f", this.manifest({ apiVersion: "v1", kind: "List", items }));
  }

  private manifest(object: object): string {
    const path = join(this.dir, "manifest.json");
    writeFileSync(path, JSON.stringify(object));
    return path;
  }

  get<T>(...what: readonly string[]): T {
    return JSON.parse(this.kubectl("get", ...what, "-o", "json")) as T;
  }

  /**
   * An object as it is now; undefined when there is none, or while the server cannot be asked. Without a program of its
   * own: looking again and again by kubectl would keep a core busy and this process from everything else.
   */
  private async look<T>(resource: Resource<T>, at: ObjectRef): Promise<T | undefined> {
    try {
      return await this.admin.get(resource, at, { ...never, timeoutMs: 15_000 });
    } catch (error) {
      if (error instanceof ApiError && (error.code === "NotFound" || error.isRetryable)) return undefined;
      throw error;
    }
  }

  lookAtPod(name: string): Promise<Pod | undefined> {
    return this.look(PODS, { namespace: "default", name });
  }

  lookAtNode(): Promise<Node | undefined> {
    return this.look(NODES, { name: this.nodeName });
  }

  /** The node's lease; fails when it has none. */
  async lease(): Promise<Lease> {
    return this.admin.get(LEASES, { namespace: "kube-node-lease", name: this.nodeName }, never);
  }

  /** When the lease was renewed last; empty while there is none, or the server cannot be asked. */
  async renewal(): Promise<string> {
    return (await this.look(LEASES, { namespace: "kube-node-lease", name: this.nodeName }))?.spec.renewTime ?? "";
  }

  /** Waits for the next renewal of the lease, and answers with its time. */
  async renewed(limitMs = 60_000): Promise<string> {
    const last = await this.renewal();
    return until(
      "the lease is renewed",
      async () => {
        const now = await this.renewal();
        return now !== last && now !== "" && now;
      },
      { limitMs, seen: () => this.agents.at(-1)?.stderr.slice(-2000) },
    );
  }

  pod(name: string): Pod | undefined {
    return this.pods().find(({ metadata }) => metadata.name === name);
  }

  pods(selector = ""): readonly Pod[] {
    return this.get<{ items: Pod[] }>("pods", ...(selector === "" ? [] : ["-l", selector])).items;
  }

  node(): Node | undefined {
    return this.get<{ items: Node[] }>("nodes").items.find(({ metadata }) => metadata.name === this.nodeName);
  }

  /** Waits until the node is Ready and pods may be made and scheduled on it. */
  async nodeReady(): Promise<Node> {
    // The server takes no pod before its controllers have made the account that it runs as.
    const account = { namespace: "default", name: "default" };
    if (this.options.controllers === true)
      await until("the default account", () => this.look(SERVICE_ACCOUNTS, account), { limitMs: 120_000 });
    return until(
      "the node is ready",
      async () => {
        this.checkAgent();
        const node = await this.lookAtNode();
        return node !== undefined && isTrue(node.status?.conditions, "Ready") && !hasTaint(node) ? node : undefined;
      },
      { limitMs: 120_000, seen: () => [this.node()?.status?.conditions, this.agents.at(-1)?.stderr.slice(-3000)] },
    );
  }

  /** Waits for a pod that looks as wanted. */
  async podIs(name: string, what: string, isWanted: (pod: Pod) => boolean | undefined): Promise<Pod> {
    return until(
      `pod ${name} ${what}`,
      async () => {
        this.checkAgent();
        const pod = await this.lookAtPod(name);
        return pod !== undefined && isWanted(pod) === true ? pod : undefined;
      },
      { limitMs: 120_000, seen: () => [this.pod(name)?.status, this.agents.at(-1)?.stderr.slice(-3000)] },
    );
  }

  podReady(name: string): Promise<Pod> {
    return this.podIs(name, "is ready", isReady);
  }

  /** Waits until there is no such pod. */
  async podGone(name: string): Promise<void> {
    const isGone = async (): Promise<boolean> => {
      try {
        await this.admin.get(PODS, { namespace: "default", name }, never);
        return false;
      } catch (error) {
        return error instanceof ApiError && error.code === "NotFound";
      }
    };
    await until(`pod ${name} is gone`, isGone, {
      limitMs: 120_000,
      seen: () => [this.pod(name), this.agents.at(-1)?.stderr.slice(-3000)],
    });
  }

  /** A pod that is bound to the node by hand: no scheduler is needed for it. */
  bound(name: string, spec: object = {}): Pod {
    return testPod(name, { nodeName: this.nodeName, ...spec });
  }

  /** Deletes pods and waits until they are gone. */
  async removePods(...names: readonly string[]): Promise<void> {
    this.kubectl("delete", "pod", ...names, "--wait=false", "--ignore-not-found");
    for (const name of names) await this.podGone(name);
  }

  /** Ids of what runs in the runtime, sandboxes too. */
  async tasks(): Promise<string[]> {
    const text = await this.containerd.ctr("tasks", "list", "--quiet");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .sort();
  }

  /** Removes the pods that a test which failed has left behind, so that the next one does not fail for it. */
  async clear(): Promise<void> {
    const all = { namespace: "default" };
    const left = async (): Promise<number> => (await this.admin.list(PODS, all, never)).items.length;
    if ((await left()) === 0) return;
    this.kubectl("delete", "deployments,daemonsets,statefulsets,jobs,pods", "--all", "--wait=false");
    await until("nothing is left", async () => (await left()) === 0, { limitMs: 120_000 });
  }

  /** What the newest container of this name in a pod wrote. */
  log(pod: Pod, container = "main"): string {
    const { namespace, name, uid } = pod.metadata;
    const folder = join(this.dir, "logs", `${namespace}_${name}_${uid}`, container);
    if (!existsSync(folder)) return "";
    const attempts = readdirSync(folder).flatMap((file) => /^(\d+)\.log$/.exec(file)?.[1] ?? []);
    if (attempts.length === 0) return "";
    const newest = Math.max(...attempts.map(Number));
    return readFileSync(join(folder, `${newest}.log`), "utf8")
      .split("\n")
      .map((line) => line.split(" ").slice(3).join(" "))
      .join("\n");
  }

  async close(): Promise<void> {
    await Promise.all(this.agents.map((agent) => agent.end("SIGKILL")));
    await this.containerd.stop();
    await this.plane.stop();
    await removeMounts(this.dir);
    await removeLogLinks(this.dir);
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** A pod of the test image. */
export function testPod(name: string, spec: object = {}, metadata: object = {}): Pod {
  const container = { name: "main", image: TEST_IMAGES.busybox, imagePullPolicy: "Never", command: FOREVER };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...metadata },
    spec: { terminationGracePeriodSeconds: 2, containers: [container], ...spec },
  };
}

export function isReady({ status }: Pod): boolean {
  return isTrue(status?.conditions, "Ready");
}

function isTrue(conditions: readonly { type: string; status: string }[] | undefined, type: string): boolean {
  return conditions?.some((condition) => condition.type === type && condition.status === "True") ?? false;
}

function hasTaint({ spec }: Node): boolean {
  return (spec.taints ?? []).length > 0;
}

/** Links to logs below `dir`, which an agent that was killed had no time to remove. */
export async function removeLogLinks(dir: string): Promise<void> {
  const folder = "/var/log/containers";
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const path = join(folder, name);
    const target = await readlink(path).catch(() => "");
    if (target.startsWith(`${dir}/`)) await rm(path, { force: true });
  }
}

/** Volumes in memory that pods of a killed agent left mounted below `dir`, innermost first. */
export async function removeMounts(dir: string): Promise<void> {
  const { execFileSync } = await import("node:child_process");
  const below = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((path) => path.startsWith(`${dir}/`))
    .sort((a, b) => b.length - a.length);
  for (const path of below) execFileSync("umount", [path]);
}
