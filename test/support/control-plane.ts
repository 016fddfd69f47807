import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { Subject } from "../../src/adapters/kubeapi/certificates.ts";
import type { ClientConfig } from "../../src/adapters/kubeapi/client-config.ts";
import { createKubeClients, type KubeClients } from "../../src/adapters/kubeapi/clients.ts";
import { TOKEN_REVIEWS } from "../../src/adapters/kubeapi/resources.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { fixed } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import { TestAuthority, writePki } from "./control-plane-pki.ts";
import { freePort } from "./free-port.ts";
import { freeze } from "./freeze.ts";

const VERSION = (process.env["KUBE_VERSION"] ?? "1.36.3").replace(/^v/, "");
const START_LIMIT_MS = 120_000;
const END_LIMIT_MS = 10_000;
const TOKEN = "abcdef.0123456789abcdef";

export interface ControlPlaneOptions {
  /** Controllers, which also make service accounts and sign certificates. Without them pods need no account. */
  readonly controllers?: boolean;
  readonly scheduler?: boolean;
  /** Pods need an account though nobody makes one. */
  readonly accounts?: boolean;
  /** How long certificates live that the controllers sign, as Go writes it (`2m0s`). */
  readonly signingDuration?: string;
  readonly apiServerArgs?: readonly string[];
}

type Part = "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler";

/** Where the binaries are: `KUBE_BIN_DIR`, or what scripts/build-kubernetes.mjs built. */
export function kubeBinDir(): string {
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return process.env["KUBE_BIN_DIR"] || join(cache, "kubelet-ts", `kubernetes-${VERSION}`);
}

/** Why no control plane can be started here, or undefined when one can. */
export function whyNoControlPlane(): string | undefined {
  if (spawnSync("etcd", ["--version"]).status !== 0) return "etcd is not installed (Debian: etcd-server)";
  const missing = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"].filter(
    (name) => !existsSync(join(kubeBinDir(), name)),
  );
  if (missing.length === 0) return undefined;
  return `${kubeBinDir()} has no ${missing.join(", ")} (node scripts/build-kubernetes.mjs)`;
}

/** Ends this process with the runner's word for "not here" when no control plane can be started. */
export function skipWithoutControlPlane(): void {
  const reason = whyNoControlPlane();
  if (reason === undefined) return;
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

/** A real control plane on loopback, with TLS, the Node authorizer and NodeRestriction. `stop` leaves nothing behind. */
export class TestControlPlane {
  readonly dir = mkdtempSync(join(tmpdir(), "kts-cp-"));
  readonly authority = new TestAuthority();
  /** A bootstrap token that the API server knows; `allowBootstrap` gives it its rights. */
  readonly bootstrapToken = TOKEN;
  private readonly file: (name: string) => string;
  private readonly children = new Map<Part, ChildProcess>();
  private readonly made: KubeClients[] = [];
  private port = 0;
  private etcdPort = 0;
  private etcdPeerPort = 0;

  private constructor(private readonly options: ControlPlaneOptions) {
    this.file = writePki(join(this.dir, "pki"), this.authority);
    const groups = "system:bootstrappers,system:bootstrappers:kubeadm:default-node-token";
    writeFileSync(this.file("tokens.csv"), `${TOKEN},system:bootstrap:abcdef,1,"${groups}"\n`, { mode: 0o600 });
  }

  /** Starts everything that was asked for and waits until it is ready. On failure nothing is left behind. */
  static async start(options: ControlPlaneOptions = {}): Promise<TestControlPlane> {
    const plane = new TestControlPlane(options);
    try {
      [plane.port, plane.etcdPort, plane.etcdPeerPort] = [await freePort(), await freePort(), await freePort()];
      plane.run("etcd", plane.etcdArgs());
      await plane.startApiServer();
      if (options.controllers) plane.startControllers();
      if (options.scheduler) plane.startScheduler();
      return plane;
    } catch (error) {
      const tails = [...plane.children.keys()].map((part) => `--- ${part}\n${plane.logTail(part)}`);
      await plane.stop();
      throw new Error(`the control plane did not start: ${String(error)}\n${tails.join("\n")}`, { cause: error });
    }
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** Configuration of a client of this cluster with a certificate of its own. */
  config(subject: Subject, lifetimeMs?: number): ClientConfig {
    const pair = this.authority.client(subject, lifetimeMs);
    return {
      servers: [this.url],
      authority: { kind: "data", pem: this.authority.certificate },
      isInsecure: false,
      namespace: "default",
      identity: {
        certificate: { kind: "data", pem: pair.certificate },
        key: { kind: "data", pem: pair.key },
      },
    };
  }

  /** Clients without rate limits, closed by `stop`; of an administrator unless a subject is given. */
  clients(subject: Subject = ADMIN): KubeClients {
    return this.clientsOf(this.config(subject));
  }

  clientsOf(config: ClientConfig): KubeClients {
    const none = { qps: 0, burst: 1 };
    const clients = createKubeClients(
      { clock: new SystemClock(), log: silent },
      {
        config,
        userAgent: "kubelet-ts-test",
        limits: fixed({ calls: none, events: none }),
        heartbeatTimeoutMs: 10_000,
      },
    );
    this.made.push(clients);
    return clients;
  }

  /** Writes a kubeconfig for the subject and answers with its path. */
  writeKubeconfig(name: string, subject: Subject): string {
    const pair = this.authority.client(subject);
    const user = {
      "client-certificate-data": Buffer.from(pair.certificate).toString("base64"),
      "client-key-data": Buffer.from(pair.key).toString("base64"),
    };
    return this.writeConfigOf(name, user);
  }

  /** Writes a bootstrap kubeconfig, which holds only the token; for another way to the server if one is given. */
  writeBootstrapKubeconfig(name = "bootstrap", server = this.url): string {
    return this.writeConfigOf(name, { token: TOKEN }, server);
  }

  /** Lets whoever has the bootstrap token ask for a client certificate, and has it approved (needs the controllers). */
  async allowBootstrap(): Promise<void> {
    const admin = this.clients();
    const bind = async (name: string, role: string, group: string): Promise<void> => {
      const body = JSON.stringify({
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRoleBinding",
        metadata: { name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
        subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: group }],
      });
      const path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
      await admin.calls.raw({ method: "POST", path, body }, { signal: new AbortController().signal });
    };
    const approve = "system:certificates.k8s.io:certificatesigningrequests";
    await bind("test-bootstrap", "system:node-bootstrapper", "system:bootstrappers");
    await bind("test-approve", `${approve}:nodeclient`, "system:bootstrappers");
    await bind("test-renew", `${approve}:selfnodeclient`, "system:nodes");
  }

  /** Who the holder of a token is, for the API server. */
  async review(token: string): Promise<{ authenticated?: boolean; user?: { username?: string } }> {
    const object = { metadata: {}, spec: { token } };
    const answer = await this.clients().calls.create(
      TOKEN_REVIEWS,
      { object },
      { signal: new AbortController().signal },
    );
    return answer.status ?? {};
  }

  async createNamespace(name: string): Promise<void> {
    const body = JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    const request = { method: "POST", path: "/api/v1/namespaces", body } as const;
    await this.clients().calls.raw(request, { signal: new AbortController().signal });
  }

  /** Runs kubectl as administrator and answers with its output; throws when it fails. */
  kubectl(...args: readonly string[]): string {
    const config = join(this.dir, "admin.kubeconfig");
    if (!existsSync(config)) this.writeKubeconfig("admin", ADMIN);
    const { status, stdout, stderr } = spawnSync(join(kubeBinDir(), "kubectl"), ["--kubeconfig", config, ...args], {
      encoding: "utf8",
      maxBuffer: 64 << 20,
      env: { ...process.env, HOME: this.dir },
    });
    if (status !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** Starts the API server (again, on the same port) and waits until it is ready. */
  async startApiServer(): Promise<void> {
    this.run("kube-apiserver", this.apiServerArgs());
    const probe = this.clientsOf(this.config(ADMIN));
    const until = performance.now() + START_LIMIT_MS;
    for (;;) {
      const options = { signal: new AbortController().signal, timeoutMs: 2_000 };
      const isReady = await probe.heartbeat.raw({ method: "GET", path: "/readyz" }, options).then(
        () => true,
        () => false,
      );
      if (isReady) break;
      if (!this.isRunning("kube-apiserver")) throw new Error("kube-apiserver ended");
      if (performance.now() > until) throw new Error("kube-apiserver is not ready");
      await pause(100);
    }
    probe.close();
  }

  /** SIGKILL: no GOAWAY, no goodbye. */
  async killApiServer(): Promise<void> {
    await this.end("kube-apiserver", "SIGKILL");
  }

  /** SIGSTOP and SIGCONT: connections stay open and silent. */
  async freezeApiServer(): Promise<void> {
    const pid = this.children.get("kube-apiserver")?.pid;
    if (pid === undefined) throw new Error("there is no kube-apiserver to freeze");
    await freeze(pid);
  }

  thawApiServer(): void {
    this.children.get("kube-apiserver")?.kill("SIGCONT");
  }

  /** Forgets etcd's history up to now, so that older watches are answered with 410 once the API server restarts. */
  async compact(): Promise<void> {
    const call = async (path: string, body: unknown): Promise<{ header?: { revision?: string } }> => {
      const answer = await fetch(`http://127.0.0.1:${this.etcdPort}${path}`, {
        method: "POST",
        body: JSON.stringify(body),
      });
      if (!answer.ok) throw new Error(`etcd ${path}: ${answer.status} ${await answer.text()}`);
      return (await answer.json()) as { header?: { revision?: string } };
    };
    const { header } = await call("/v3/kv/range", { key: Buffer.from("/").toString("base64") });
    await call("/v3/kv/compaction", { revision: header?.revision, physical: true });
  }

  logTail(part: Part, bytes = 3000): string {
    const path = this.logFile(part);
    return existsSync(path) ? readFileSync(path, "utf8").slice(-bytes) : "";
  }

  /** Ends every process that this object started and removes its folder. */
  async stop(): Promise<void> {
    for (const clients of this.made) clients.close();
    for (const part of [...this.children.keys()].reverse()) {
      // A stopped process does not hear SIGTERM.
      this.children.get(part)?.kill("SIGCONT");
      await this.end(part, part === "etcd" ? "SIGTERM" : "SIGKILL");
    }
    await rm(this.dir, { recursive: true, force: true });
  }

  private startControllers(): void {
    const kubeconfig = this.writeKubeconfig("controllers", { commonName: "system:kube-controller-manager" });
    this.run("kube-controller-manager", [
      `--kubeconfig=${kubeconfig}`,
      `--service-account-private-key-file=${this.file("service-accounts.key")}`,
      `--root-ca-file=${this.file("ca.crt")}`,
      `--cluster-signing-cert-file=${this.file("ca.crt")}`,
      `--cluster-signing-key-file=${this.file("ca.key")}`,
      ...(this.options.signingDuration ? [`--cluster-signing-duration=${this.options.signingDuration}`] : []),
      "--use-service-account-credentials=true",
      "--leader-elect=false",
      "--secure-port=0",
    ]);
  }

  private startScheduler(): void {
    const kubeconfig = this.writeKubeconfig("scheduler", { commonName: "system:kube-scheduler" });
    this.run("kube-scheduler", [`--kubeconfig=${kubeconfig}`, "--leader-elect=false", "--secure-port=0"]);
  }

  private etcdArgs(): string[] {
    const client = `http://127.0.0.1:${this.etcdPort}`;
    const peer = `http://127.0.0.1:${this.etcdPeerPort}`;
    return [
      `--data-dir=${join(this.dir, "etcd")}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
    ];
  }

  private apiServerArgs(): string[] {
    const { file } = this;
    return [
      `--etcd-servers=http://127.0.0.1:${this.etcdPort}`,
      "--bind-address=127.0.0.1",
      "--advertise-address=127.0.0.1",
      "--endpoint-reconciler-type=none",
      `--secure-port=${this.port}`,
      `--cert-dir=${this.dir}`,
      `--tls-cert-file=${file("apiserver.crt")}`,
      `--tls-private-key-file=${file("apiserver.key")}`,
      `--client-ca-file=${file("ca.crt")}`,
      `--token-auth-file=${file("tokens.csv")}`,
      `--kubelet-client-certificate=${file("kubelet-client.crt")}`,
      `--kubelet-client-key=${file("kubelet-client.key")}`,
      "--kubelet-preferred-address-types=InternalIP,Hostname",
      `--service-account-key-file=${file("service-accounts.key")}`,
      `--service-account-signing-key-file=${file("service-accounts.key")}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      "--service-cluster-ip-range=10.96.0.0/16",
      "--authorization-mode=Node,RBAC",
      "--enable-admission-plugins=NodeRestriction",
      ...(this.options.controllers || this.options.accounts ? [] : ["--disable-admission-plugins=ServiceAccount"]),
      "--allow-privileged=true",
      "--profiling=false",
      ...(this.options.apiServerArgs ?? []),
    ];
  }

  private run(part: Part, args: readonly string[]): void {
    const log = openSync(this.logFile(part), "a", 0o600);
    const command = part === "etcd" ? part : join(kubeBinDir(), part);
    const env = { ...process.env, HOME: this.dir, ETCD_UNSUPPORTED_ARCH: process.arch };
    const child = spawn(command, [...args], { cwd: this.dir, stdio: ["ignore", log, log], env });
    child.on("error", () => undefined);
    closeSync(log);
    this.children.set(part, child);
  }

  private isRunning(part: Part): boolean {
    const child = this.children.get(part);
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  private async end(part: Part, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.children.get(part);
    if (child === undefined || !this.isRunning(part)) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), END_LIMIT_MS);
    await gone;
    clearTimeout(late);
  }

  private writeConfigOf(name: string, user: Readonly<Record<string, string>>, server = this.url): string {
    const path = join(this.dir, `${name}.kubeconfig`);
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "test",
          cluster: {
            server,
            "certificate-authority-data": Buffer.from(this.authority.certificate).toString("base64"),
          },
        },
      ],
      users: [{ name: "test", user }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
      "current-context": "test",
    };
    writeFileSync(path, JSON.stringify(config, undefined, 2), { mode: 0o600 });
    return path;
  }

  private logFile(part: Part): string {
    return join(this.dir, `${part}.log`);
  }
}

const ADMIN: Subject = { commonName: "admin", organizations: ["system:masters"] };

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
