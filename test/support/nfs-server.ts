import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../integration/support/until.ts";

const CONTROL = "/proc/fs/nfsd";
/** Of the daemon that mount.nfs(8) starts when it tries version 3, and that stays. */
const STATD_PID = "/run/rpc.statd.pid";
const RULE = ["INPUT", "-p", "tcp", "--dport", "2049", "-j", "DROP"];

/** Why no NFS server and client can run here, or undefined. */
export function whyNoNfs(): string | undefined {
  if (process.getuid?.() !== 0) return "not root";
  const missing = ["mount.nfs", "exportfs", "rpc.nfsd", "rpc.mountd"].filter(
    (name) => spawnSync("which", [name], { env: withSbin() }).status !== 0,
  );
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  for (const module of ["nfs", "nfsv4", "nfsd"]) spawnSync("modprobe", [module], { env: withSbin() });
  const known = readFileSync("/proc/filesystems", "utf8");
  const lacking = ["nfs4", "nfsd"].filter((type) => !new RegExp(`\\t${type}$`, "m").test(known));
  return lacking.length === 0 ? undefined : `the kernel has no ${lacking.join(" and no ")}`;
}

function withSbin(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` };
}

function run(file: string, ...args: string[]): string {
  return execFileSync(file, args, { env: withSbin(), encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** The kernel's NFS server (version 4) with one export, on the loopback. */
export class NfsServer {
  /** The directory that is exported. */
  readonly path: string;
  private mountd: ChildProcess | undefined;
  private readonly hadStatd = existsSync(STATD_PID);

  constructor(dir: string) {
    this.path = join(dir, "export");
    mkdirSync(this.path, { mode: 0o777 });
  }

  async start(): Promise<void> {
    if (!existsSync(join(CONTROL, "threads"))) run("mount", "-t", "nfsd", "nfsd", CONTROL);
    // Nobody reclaims locks of an earlier server: the shortest times that the kernel takes.
    for (const name of ["nfsv4leasetime", "nfsv4gracetime"]) writeFileSync(join(CONTROL, name), "10");
    const options = "rw,no_root_squash,insecure,no_subtree_check,fsid=42";
    run("exportfs", "-o", options, `127.0.0.1:${this.path}`);
    this.mountd = spawn("rpc.mountd", ["--foreground", "--no-nfs-version", "3"], { env: withSbin(), stdio: "ignore" });
    this.mountd.on("error", () => undefined);
    run("rpc.nfsd", "--no-nfs-version", "3", "2");
    await until("the NFS server runs", () => Number(readFileSync(join(CONTROL, "threads"), "utf8")) > 0);
  }

  /** Ends it: clients are refused. */
  stop(): void {
    run("rpc.nfsd", "0");
    this.mountd?.kill("SIGKILL");
    run("exportfs", "-u", `127.0.0.1:${this.path}`);
  }

  /** Nothing reaches it any more, as if its cable were pulled. */
  unplug(): void {
    run("iptables", "-w", "-I", ...RULE);
  }

  plug(): void {
    spawnSync("iptables", ["-w", "-D", ...RULE], { env: withSbin(), stdio: "ignore" });
  }

  close(): void {
    this.plug();
    this.stop();
    run("umount", CONTROL);
    if (!this.hadStatd) endStatd();
  }
}

function endStatd(): void {
  if (!existsSync(STATD_PID)) return;
  const pid = Number(readFileSync(STATD_PID, "utf8"));
  try {
    if (pid > 1 && readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("rpc.statd")) process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
  rmSync(STATD_PID, { force: true });
}
