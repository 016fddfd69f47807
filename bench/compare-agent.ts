import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { KUBELET, Program } from "../test/integration/support/program.ts";
import type { TestContainerd } from "../test/support/containerd.ts";
import { kubeBinDir, type TestControlPlane } from "../test/support/control-plane.ts";
import { freePort } from "../test/support/free-port.ts";

/** Who is measured. */
export type Contestant = "kubelet-ts" | "go";

/** The containerd that both use: the version that the comparison names, if it was built, else the machine's. */
export function containerdDir(): string | undefined {
  const dir = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "kubelet-ts", "containerd-2.4.2");
  return existsSync(join(dir, "containerd")) ? dir : undefined;
}

/** The original, if it was built (`node scripts/build-kubernetes.mjs kubelet`). */
export function goKubelet(): string | undefined {
  const path = join(kubeBinDir(), "kubelet");
  return existsSync(path) ? path : undefined;
}

/** One agent process as a node of its own. */
export class ComparedAgent {
  readonly program: Program;

  private constructor(
    command: readonly string[],
    /** The main port. */
    readonly port: number,
    /** Where the logs of pods are. */
    readonly logs: string,
  ) {
    this.program = new Program(command, { stdio: ["ignore", "ignore", "pipe"] });
  }

  static async start(
    who: Contestant,
    { plane, containerd, dir }: { plane: TestControlPlane; containerd: TestContainerd; dir: string },
    /** Fields of the configuration beside those of the comparison. */
    fields: object = {},
  ): Promise<ComparedAgent> {
    const node = nodeOf(who);
    const root = join(dir, node);
    mkdirSync(join(root, "manifests"), { recursive: true });
    const subject = { commonName: `system:node:${node}`, organizations: ["system:nodes"] };
    const port = await freePort();
    const config = {
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      containerRuntimeEndpoint: containerd.endpoint,
      cgroupRoot: containerd.cgroupParent,
      cgroupDriver: "cgroupfs",
      failSwapOn: false,
      failCgroupV1: false,
      enforceNodeAllocatable: [],
      resolvConf: "",
      port,
      healthzPort: await freePort(),
      readOnlyPort: 0,
      maxPods: 250,
      // A log that is read while it is measured must not be rotated away.
      containerLogMaxSize: "4Gi",
      staticPodPath: join(root, "manifests"),
      podLogsDir: join(root, "logs"),
      authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
      authorization: { mode: "AlwaysAllow" },
      evictionHard: { "memory.available": "1Mi" },
      ...fields,
    };
    writeFileSync(join(root, "config.json"), JSON.stringify(config));
    const command = [
      who === "go" ? (goKubelet() ?? "kubelet") : KUBELET,
      ...[`--config=${join(root, "config.json")}`, `--kubeconfig=${plane.writeKubeconfig(node, subject)}`],
      ...[`--hostname-override=${node}`, `--root-dir=${join(root, "root")}`, `--cert-dir=${join(root, "pki")}`],
    ];
    return new ComparedAgent(command, port, config.podLogsDir);
  }

  /** Milliseconds of CPU that the process has used, and its resident bytes. */
  usage(): { cpuMs: number; residentBytes: number } {
    const stat = readFileSync(`/proc/${this.program.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);
    const resident = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${this.program.pid}/status`, "utf8"))?.[1] ?? "0";
    // A tick is 10 ms on every Linux that this runs on.
    return { cpuMs: ticks * 10, residentBytes: Number(resident) * 1024 };
  }

  async stop(): Promise<void> {
    await this.program.end("SIGTERM");
  }
}

/** The node's name of a contestant. */
export function nodeOf(who: Contestant): string {
  return `node-${who}`;
}

/** Removes what the agents left below a directory. The original leaves mounts there when it ends. */
export function removeAgentFiles(dir: string): void {
  const mounts = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((path) => path.startsWith(`${dir}/`))
    .sort((a, b) => b.length - a.length);
  for (const path of mounts) execFileSync("umount", [path]);
  rmSync(dir, { recursive: true, force: true });
}
