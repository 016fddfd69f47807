import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../integration/support/until.ts";

const RULE = ["INPUT", "-p", "tcp", "--dport", "3260", "-j", "DROP"];
const INITIATOR = "/etc/iscsi/initiatorname.iscsi";
/** Where tgtd has its sockets; it leaves them when it is killed. */
const SOCKETS = "/run/tgtd";
const CONFIGURATION = "/etc/iscsi/iscsid.conf";
const env: NodeJS.ProcessEnv = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` };

function run(file: string, ...args: string[]): string {
  return execFileSync(file, args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Why there can be no disks of a network here, or undefined. */
export function whyNoIscsi(): string | undefined {
  if (process.getuid?.() !== 0) return "not root";
  const missing = ["iscsiadm", "iscsid", "tgtd", "tgtadm"].filter(
    (name) => spawnSync("which", [name], { env }).status !== 0,
  );
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  for (const module of ["iscsi_tcp", "sd_mod"]) {
    const { status, stderr } = spawnSync("modprobe", [module], { env, encoding: "utf8" });
    if (status !== 0) return `the kernel has no ${module}: ${stderr.trim()}`;
  }
  return undefined;
}

/** The node's iscsid and a target with disks of its own, on the loopback. */
export class IscsiTarget {
  readonly iqn = "iqn.2026-01.example.test:disks";
  private readonly daemons: ChildProcess[] = [];
  private readonly hadSockets = existsSync(SOCKETS);

  constructor(private readonly dir: string) {}

  /** Disks 1 and 2; with a name and a password if there are some. */
  async start(): Promise<void> {
    writeFileSync(INITIATOR, "InitiatorName=iqn.2026-01.example.test:node\n");
    // A disk that is gone fails soon.
    const text = readFileSync(CONFIGURATION, "utf8");
    writeFileSync(CONFIGURATION, text.replace(/^(node\.session\.timeo\.replacement_timeout =).*$/m, "$1 5"));
    mkdirSync("/run/lock/iscsi", { recursive: true });
    this.daemons.push(
      spawn("iscsid", ["-f"], { env, stdio: "ignore" }),
      spawn("tgtd", ["-f"], { env, stdio: "ignore" }),
    );
    for (const daemon of this.daemons) daemon.on("error", () => undefined);
    await until("tgtd answers", () => spawnSync("tgtadm", ["--mode", "sys", "--op", "show"], { env }).status === 0);
    this.admin("target", "new", "--tid", "1", "-T", this.iqn);
    for (const lun of [1, 2]) {
      const file = join(this.dir, `disk-${lun}`);
      writeFileSync(file, "");
      truncateSync(file, 64 * 2 ** 20);
      this.admin("logicalunit", "new", "--tid", "1", "--lun", String(lun), "-b", file);
    }
    this.admin("target", "bind", "--tid", "1", "-I", "ALL");
  }

  /** From now on a login needs a name and a password. */
  protect(user: string, password: string): void {
    this.admin("account", "new", "--user", user, "--password", password);
    this.admin("account", "bind", "--tid", "1", "--user", user);
  }

  unprotect(user: string): void {
    this.admin("account", "unbind", "--tid", "1", "--user", user);
    this.admin("account", "delete", "--user", user);
  }

  /** Portals of the sessions that there are. */
  sessions(): readonly string[] {
    const { stdout } = spawnSync("iscsiadm", ["-m", "session"], { env, encoding: "utf8" });
    return stdout.split("\n").filter((line) => line.includes(this.iqn));
  }

  /** Disks of the target that the kernel has. */
  disks(): readonly string[] {
    const links = existsSync("/dev/disk/by-path") ? readdirSync("/dev/disk/by-path") : [];
    return links.filter((name) => name.includes(this.iqn));
  }

  unplug(): void {
    run("iptables", "-w", "-I", ...RULE);
  }

  plug(): void {
    spawnSync("iptables", ["-w", "-D", ...RULE], { env, stdio: "ignore" });
  }

  close(): void {
    this.plug();
    spawnSync("iscsiadm", ["-m", "node", "-T", this.iqn, "--logout"], { env, stdio: "ignore" });
    spawnSync("iscsiadm", ["-m", "node", "-T", this.iqn, "-o", "delete"], { env, stdio: "ignore" });
    for (const portal of ["127.0.0.1:3260", "127.0.0.2:3260"])
      spawnSync("iscsiadm", ["-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-o", "delete"], {
        env,
        stdio: "ignore",
      });
    for (const daemon of this.daemons) daemon.kill("SIGKILL");
    if (!this.hadSockets) rmSync(SOCKETS, { recursive: true, force: true });
  }

  private admin(mode: string, operation: string, ...args: string[]): void {
    run("tgtadm", "--lld", "iscsi", "--mode", mode, "--op", operation, ...args);
  }
}
