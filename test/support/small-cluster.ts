import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Event, Node, Pod } from "../../src/model/generated/types.ts";
import { FakeApiServer } from "../contract/kubeapi-fake-server.ts";
import { KUBELET, Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { removeLogLinks, removeMounts } from "./cluster-site.ts";
import { TEST_IMAGES, TestContainerd, type TestContainerdOptions } from "./containerd.ts";
import { freePort } from "./free-port.ts";

const HEAD = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
const NODE = "node-a";
const PODS = { collection: "v1/pods", namespace: "default", name: "" };
const LIMIT_MS = 60_000;

/**
 * An agent of a cluster whose API server is a part of this process: for machines on which a real control plane would
 * take minutes to start. It has neither a scheduler nor controllers: pods are bound to the node, and nobody taints it.
 */
export class SmallCluster {
  readonly dir = mkdtempSync(join(tmpdir(), "sc-"));
  readonly root = join(this.dir, "r");
  readOnlyPort = 0;
  agent: Program | undefined;

  private constructor(
    readonly api: FakeApiServer,
    readonly containerd: TestContainerd,
  ) {
    mkdirSync(this.root);
    const { certificate, key } = api.clientPair(`system:node:${NODE}`);
    const pem = (name: string, text: string): string => {
      writeFileSync(join(this.dir, name), text, { mode: 0o600 });
      return join(this.dir, name);
    };
    const user = { "client-certificate": pem("c.crt", certificate), "client-key": pem("c.key", key) };
    const cluster = { server: api.url, "certificate-authority": pem("ca.crt", api.authorityPem) };
    const kubeconfig = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "c", cluster }],
      users: [{ name: "u", user }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    };
    writeFileSync(join(this.dir, "kubeconfig"), JSON.stringify(kubeconfig), { mode: 0o600 });
  }

  static async start(runtime: TestContainerdOptions = {}): Promise<SmallCluster> {
    const containerd = await TestContainerd.start(runtime);
    try {
      return new SmallCluster(await FakeApiServer.start(), containerd);
    } catch (error) {
      await containerd.stop();
      throw error;
    }
  }

  /** Starts an agent with this configuration, and waits until its node is ready. */
  async join(config: object, flags: readonly string[] = []): Promise<Program> {
    const file = join(this.dir, "kubelet.json");
    writeFileSync(file, JSON.stringify({ ...HEAD, ...config }));
    this.readOnlyPort = await freePort();
    const agent = new Program([
      ...[KUBELET, `--kubeconfig=${join(this.dir, "kubeconfig")}`, `--config=${file}`, `--hostname-override=${NODE}`],
      ...[`--root-dir=${this.root}`, `--cert-dir=${join(this.dir, "pki")}`, `--pod-logs-dir=${join(this.dir, "logs")}`],
      ...[`--container-runtime-endpoint=${this.containerd.endpoint}`, `--cgroup-root=${this.containerd.cgroupParent}`],
      ...[`--local-api-socket=${join(this.dir, "kubelet.sock")}`, "--make-iptables-util-chains=false"],
      ...[`--healthz-port=${await freePort()}`, `--port=${await freePort()}`, `--read-only-port=${this.readOnlyPort}`],
      ...["--resolv-conf=", "--v=2", ...flags],
    ]);
    this.agent = agent;
    await this.nodeIs("is ready", hasCondition("Ready", "True"));
    return agent;
  }

  /** The local socket of the agent, for its commands. */
  get socket(): string {
    return join(this.dir, "kubelet.sock");
  }

  get node(): Node | undefined {
    return this.list<Node>("nodes")[0];
  }

  pod(name: string): Pod | undefined {
    return this.list<Pod>("pods").find(({ metadata }) => metadata.name === name);
  }

  events(reason: string): readonly Event[] {
    return this.list<Event>("events").filter((event) => event.reason === reason);
  }

  /** Creates a pod that is bound to the node and runs a shell script. */
  create(
    name: string,
    script: string,
    { container = {}, ...spec }: Partial<Pod["spec"]> & { container?: object } = {},
  ): void {
    const command = ["/bin/sh", "-c", script];
    const main = { name: "main", image: TEST_IMAGES.busybox, imagePullPolicy: "Never", command, ...container };
    this.api.objects.create(PODS, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, creationTimestamp: new Date().toISOString() },
      spec: {
        nodeName: NODE,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        terminationGracePeriodSeconds: 30,
        containers: [main],
        ...spec,
      },
      status: { phase: "Pending" },
    });
  }

  /** Deletes a pod, and waits until the agent has let it go. */
  async remove(name: string): Promise<void> {
    this.api.objects.delete({ ...PODS, name }, { gracePeriodSeconds: 1 });
    await until(`pod ${name} is gone`, () => this.pod(name) === undefined, {
      limitMs: LIMIT_MS,
      seen: () => this.seen,
    });
  }

  podIs(name: string, what: string, isWanted: (pod: Pod) => boolean): Promise<Pod> {
    const look = (): Pod | undefined => {
      this.checkAgent();
      const pod = this.pod(name);
      return pod !== undefined && isWanted(pod) ? pod : undefined;
    };
    return until(`pod ${name} ${what}`, look, { limitMs: LIMIT_MS, seen: () => [this.pod(name)?.status, this.seen] });
  }

  running(name: string): Promise<Pod> {
    return this.podIs(name, "runs", ({ status }) => status?.containerStatuses?.[0]?.state?.running !== undefined);
  }

  nodeIs(what: string, isWanted: (node: Node) => boolean): Promise<Node> {
    const look = (): Node | undefined => {
      this.checkAgent();
      return this.node !== undefined && isWanted(this.node) ? this.node : undefined;
    };
    return until(`the node ${what}`, look, {
      limitMs: LIMIT_MS,
      seen: () => [this.node?.status?.conditions, this.seen],
    });
  }

  async page(path: string): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.readOnlyPort}${path}`)).text();
  }

  /** Ends the agent, and removes everything of its pods. */
  async close(): Promise<void> {
    await this.agent?.end("SIGKILL");
    await this.api.stop();
    await this.containerd.removeEverything();
    await this.containerd.stop();
    await removeMounts(this.dir);
    await removeLogLinks(this.dir);
    rmSync(this.dir, { recursive: true, force: true });
  }

  private get seen(): string {
    return this.agent?.stderr.slice(-4000) ?? "";
  }

  private checkAgent(): void {
    if (this.agent?.isOver === true) throw new Error(`the agent ended:\n${this.seen}`);
  }

  private list<T>(plural: string): readonly T[] {
    const place = { collection: `v1/${plural}`, namespace: "", name: "" };
    return this.api.objects.list(place, "") as unknown as readonly T[]; // reason: the agent made them, or this class
  }
}

export function hasCondition(type: string, status: string): (node: Node) => boolean {
  return (node) => node.status?.conditions?.some((one) => one.type === type && one.status === status) ?? false;
}
