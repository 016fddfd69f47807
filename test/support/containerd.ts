import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { networkInterfaces, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { CriRuntime } from "../../src/adapters/cri/cri-runtime.ts";
import { buildOciArchive, imageArchitecture } from "../../src/adapters/embedded/oci-archive.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { fixed } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import { testConfig } from "./containerd-config.ts";
import { findLeftovers, type Leftovers, removeLeftovers } from "./leftovers.ts";
import { markedTag } from "./mark.ts";

/** Image names of every test containerd; they name no registry that exists. */
export const TEST_IMAGES = {
  busybox: "localhost/kubelet-ts-test/busybox:1",
  pause: "localhost/kubelet-ts-test/pause:1",
} as const;

const START_LIMIT_MS = 60_000 * Number(process.env["KUBELET_TEST_SLOW"] ?? 1);
const CNI_BIN_DIR = "/usr/lib/cni";
const TOOLS = ["containerd", "containerd-shim-runc-v2", "ctr", "runc", "ip", "mount", "busybox", "catatonit"];

export interface TestContainerdOptions {
  /** Where containerd, its shim and ctr are; found in PATH unless given. */
  readonly binDir?: string;
  /** Runtime handlers beside the default one; see `testConfig`. */
  readonly handlers?: readonly string[];
  /** Containers are scopes of systemd's, below the slice of their pod. */
  readonly systemdCgroup?: boolean;
  /** There is no network until the runtime is told the addresses of pods. */
  readonly awaitsPodCidr?: boolean;
  /** It trusts registries by this certificate; see `trust`. */
  readonly registryCa?: string;
}

/** Why no containerd can be started here, or undefined when one can. For tests that say what they left out. */
export function whyNoContainerd({ binDir }: TestContainerdOptions = {}): string | undefined {
  if (process.getuid?.() !== 0) return "not root";
  const missing = TOOLS.filter((tool) => findTool(tool, binDir) === undefined);
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  if (!existsSync(join(CNI_BIN_DIR, "bridge"))) return `no CNI plug-ins in ${CNI_BIN_DIR}`;
  return undefined;
}

/** The CDI device that every test containerd from version 2 on has: it sets a variable. */
export const CDI_DEVICE = "example.com/card=zero";
const CDI_SPEC = {
  cdiVersion: "0.5.0",
  kind: "example.com/card",
  devices: [{ name: "zero", containerEdits: { env: ["CARD=zero"] } }],
};

/** A private containerd in a temporary directory with its own bridge and cgroup; `stop` leaves nothing behind. */
export class TestContainerd {
  readonly dir = mkdtempSync(join(tmpdir(), "kts-ctd-"));
  readonly socket = join(this.dir, "c.sock");
  readonly endpoint = `unix://${this.socket}`;
  readonly logFile = join(this.dir, "containerd.log");
  private readonly tag = markedTag();
  /** Give it to sandboxes as `cgroupParent`, so that `stop` finds what they made. */
  readonly cgroupParent = `/kts-test-${this.tag}`;
  readonly bridge = `ktt-${this.tag}`;
  readonly subnet = freeSubnet();
  /** Major and minor, `1.6` or `2.4`. */
  readonly version: string;
  private readonly configFile = join(this.dir, "config.toml");
  private readonly registries = join(this.dir, "certs.d");
  private readonly registryCa = join(this.dir, "registry-ca.crt");
  private child: ChildProcess | undefined;

  private constructor(private readonly options: TestContainerdOptions) {
    const output = spawnSync(this.tool("containerd"), ["--version"], { encoding: "utf8" }).stdout;
    const [, major, minor] = /containerd\S* v?(\d+)\.(\d+)/.exec(output) ?? [];
    if (major === undefined) throw new Error(`containerd --version said ${JSON.stringify(output)}`);
    this.version = `${major}.${minor}`;
    const handlers = (options.handlers ?? []).map((name) => `runc-${name}`);
    for (const sub of ["cdi", "net.d", "run", "s", "runc", ...handlers]) mkdirSync(join(this.dir, sub));
    const template = join(this.dir, "network.template");
    const config = testConfig({
      ...(options.handlers && { handlers: options.handlers }),
      ...(options.systemdCgroup === true && { systemdCgroup: true }),
      ...(options.awaitsPodCidr === true && { networkTemplate: template }),
      ...(options.registryCa !== undefined && { registries: this.registries }),
      major: Number(major),
      dir: this.dir,
      socket: this.socket,
      cniBinDir: CNI_BIN_DIR,
      sandboxImage: TEST_IMAGES.pause,
      snapshotter: overlayWorks(this.dir) ? "overlayfs" : "native",
    });
    writeFileSync(this.configFile, config);
    if (options.registryCa !== undefined) writeFileSync(this.registryCa, options.registryCa);
    writeFileSync(join(this.dir, "cdi", "card.json"), JSON.stringify(CDI_SPEC));
    const network = JSON.stringify(this.network(), undefined, 2);
    if (options.awaitsPodCidr === true) writeFileSync(template, network.replace(this.subnet, "{{.PodCIDR}}"));
    else writeFileSync(join(this.dir, "net.d", "10-test.conflist"), network);
  }

  /** Starts one and imports the test images. On failure nothing is left behind. */
  static async start(options: TestContainerdOptions = {}): Promise<TestContainerd> {
    const containerd = new TestContainerd(options);
    try {
      await containerd.start();
      await containerd.importImages();
      return containerd;
    } catch (error) {
      await containerd.stop();
      throw error;
    }
  }

  /** Starts the process (again) and waits until it answers. */
  async start(): Promise<void> {
    if (this.isRunning) return;
    const log = openSync(this.logFile, "a");
    const path = [this.options.binDir, process.env.PATH].filter((part) => part !== undefined).join(delimiter);
    this.child = spawn(this.tool("containerd"), ["--config", this.configFile], {
      detached: true,
      stdio: ["ignore", log, log],
      // Where a registry has not what is asked for, 1.6 asks once more with the certificates of the system.
      env: {
        ...process.env,
        PATH: path,
        ...(this.options.registryCa !== undefined && { SSL_CERT_FILE: this.registryCa }),
      },
    });
    this.child.on("error", () => undefined);
    closeSync(log);
    await this.untilAnswering();
  }

  /** Lets it pull from `HOST:PORT` over TLS. */
  trust(host: string): void {
    const dir = join(this.registries, host);
    mkdirSync(dir, { recursive: true });
    const server = JSON.stringify(`https://${host}`);
    const ca = JSON.stringify(this.registryCa);
    writeFileSync(join(dir, "hosts.toml"), `server = ${server}\n[host.${server}]\nca = ${ca}\n`);
  }

  /** SIGKILL: containers go on, as they do when containerd crashes. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  /** The process while it runs. */
  get pid(): number | undefined {
    return this.isRunning ? this.child?.pid : undefined;
  }

  /** Runs `ctr` in the namespace of CRI and answers with its output. */
  async ctr(...args: readonly string[]): Promise<string> {
    const all = ["--address", this.socket, "--namespace", "k8s.io", ...args];
    return (await promisify(execFile)(this.tool("ctr"), all, { maxBuffer: 64 << 20 })).stdout;
  }

  /** Ends and removes every pod, as a reboot of the machine does. */
  removeEverything(): Promise<void> {
    return this.removePods();
  }

  /** Ends everything at once, and clears what does not outlive a reboot: processes, mounts, cgroups, run-time state. */
  async losePower(): Promise<void> {
    await this.end("SIGKILL");
    await removeLeftovers(this.leftovers);
    await rm(join(this.dir, "run"), { recursive: true });
    mkdirSync(join(this.dir, "run"));
  }

  /** The end of containerd's log, for a failure that needs explaining. */
  logTail(bytes = 4000): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, "utf8").slice(-bytes) : "";
  }

  /** Removes pods, process, shims, mounts, network namespaces, bridge, cgroups and directory; throws if any stays. */
  async stop(): Promise<void> {
    if (!existsSync(this.dir)) return;
    try {
      await this.start();
      await this.removePods();
    } catch {
      // A broken runtime cannot clean up after itself; what follows does not need it.
    }
    await this.end("SIGTERM");
    await removeLeftovers(this.leftovers);
    await rm(this.dir, { recursive: true, force: true });
    const left = findLeftovers(this.leftovers);
    if (left.length > 0) throw new Error(`containerd left behind: ${left.join(", ")}`);
  }

  private get leftovers(): Leftovers {
    return { dir: this.dir, socket: this.socket, bridge: this.bridge, cgroup: this.cgroupParent };
  }

  private get isRunning(): boolean {
    return this.child?.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  private async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.child;
    if (child === undefined || !this.isRunning) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
    await gone;
    clearTimeout(timer);
  }

  private async untilAnswering(): Promise<void> {
    await this.withRuntime(async (runtime, signal) => {
      for (const began = Date.now(); ; ) {
        if (!this.isRunning) throw new Error(`containerd ended:\n${this.logTail()}`);
        const ready = await runtime.status({ signal }).then(
          (status) => status.ready && (status.networkReady || this.options.awaitsPodCidr === true),
          () => false,
        );
        if (ready) return;
        if (Date.now() - began > START_LIMIT_MS) throw new Error(`containerd does not answer:\n${this.logTail()}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
  }

  private async removePods(): Promise<void> {
    await this.withRuntime(async (runtime, signal) => {
      for (const { id } of await runtime.listSandboxes({}, { signal })) {
        await runtime.stopSandbox(id, { signal });
        await runtime.removeSandbox(id, { signal });
      }
    });
  }

  private async withRuntime(work: (runtime: CriRuntime, signal: AbortSignal) => Promise<void>): Promise<void> {
    const deps = { clock: new SystemClock(), log: silent };
    const runtime = new CriRuntime(deps, { endpoint: this.endpoint, requestTimeoutMs: fixed(60_000) });
    try {
      await work(runtime, new AbortController().signal);
    } finally {
      runtime.close();
    }
  }

  private async importImages(): Promise<void> {
    const archive = join(this.dir, "images.tar");
    writeFileSync(archive, buildOciArchive(testImages(), imageArchitecture(process.arch)));
    await this.ctr("images", "import", archive);
    await rm(archive);
  }

  private network(): object {
    const ipam = {
      type: "host-local",
      dataDir: join(this.dir, "ipam"),
      ranges: [[{ subnet: this.subnet }]],
      routes: [{ dst: "0.0.0.0/0" }],
    };
    const bridge = { type: "bridge", bridge: this.bridge, isGateway: true, ipMasq: false, hairpinMode: true, ipam };
    // Writes iptables rules only for pods with host ports, and takes them away with the pod.
    const portmap = { type: "portmap", capabilities: { portMappings: true } };
    return { cniVersion: "0.4.0", name: `kts-test-${this.tag}`, plugins: [bridge, portmap] };
  }

  private tool(name: string): string {
    return findTool(name, this.options.binDir) ?? name;
  }
}

/** busybox with the few links that tests call by name, and catatonit as the sandbox's process. */
function testImages(): Parameters<typeof buildOciArchive>[0] {
  const file = (path: string, tool: string) =>
    ({ kind: "file", path, mode: 0o755, data: readFileSync(findTool(tool) ?? tool) }) as const;
  const directories = ["bin", "dev", "etc", "proc", "sys", "tmp"].map(
    (path) => ({ kind: "directory", path, mode: path === "tmp" ? 0o1777 : 0o755 }) as const,
  );
  const links = ["sh", "sleep", "cat", "echo", "env", "true", "false", "httpd", "wget", "id", "ls", "kill"].map(
    (name) => ({ kind: "symlink", path: `bin/${name}`, target: "busybox" }) as const,
  );
  return [
    {
      name: TEST_IMAGES.busybox,
      files: [...directories, file("bin/busybox", "busybox"), ...links],
      command: ["/bin/sh"],
      env: ["PATH=/bin"],
    },
    { name: TEST_IMAGES.pause, files: [file("catatonit", "catatonit")], entrypoint: ["/catatonit", "-P"] },
  ];
}

/** The tool's path: from `binDir` if it is there, else from PATH and the places that a plain user's PATH lacks. */
function findTool(name: string, binDir?: string): string | undefined {
  const dirs = [binDir, ...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  for (const dir of dirs) {
    if (dir === undefined || dir === "") continue;
    const path = join(dir, name);
    if (existsSync(path)) return path;
  }
  return undefined;
}

/** A /24 that no interface of this machine is in. */
function freeSubnet(): string {
  const taken = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
  for (;;) {
    const prefix = `10.${200 + Math.floor(Math.random() * 50)}.${Math.floor(Math.random() * 256)}.`;
    if (!taken.some((address) => address.startsWith(prefix))) return `${prefix}0/24`;
  }
}

function overlayWorks(dir: string): boolean {
  const base = join(dir, "overlay-test");
  for (const sub of ["lower", "upper", "work", "merged"]) mkdirSync(join(base, sub), { recursive: true });
  const options = `lowerdir=${base}/lower,upperdir=${base}/upper,workdir=${base}/work`;
  const mounted = spawnSync("mount", ["-t", "overlay", "overlay", "-o", options, join(base, "merged")]);
  if (mounted.status !== 0) return false;
  spawnSync("umount", [join(base, "merged")]);
  return true;
}
