import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { until } from "../integration/support/until.ts";
import { removeLeftovers } from "./leftovers.ts";

/** Makes the machine from inside its new namespaces; the last command is its init, which reaps and waits. */
const SETUP = `set -eu
dir=$1; name=$2; shift 2
mount -t tmpfs -o mode=755 tmpfs "$dir/m"
mkdir "$dir/m/up" "$dir/m/work" "$dir/m/root"
mount -t overlay -o "lowerdir=/,upperdir=$dir/m/up,workdir=$dir/m/work" overlay "$dir/m/root"
cd "$dir/m/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount --rbind /dev dev
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
for shared in "$@"; do mkdir -p ".$shared"; mount --rbind "$shared" ".$shared"; done
mkdir -p ".$dir"
mount --bind "$dir" ".$dir"
mkdir .old
pivot_root . .old
umount -l .old
rmdir .old
hostname "$name"
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
: > "$dir/made"
exec catatonit -P
`;

export interface Finished {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A machine inside this one: processes, mounts, network and host name of its own. It sees the files of this machine, and
 * what it writes goes to memory, except below `dir`. Everything ends with it.
 */
export class NodeMachine {
  readonly dir = mkdtempSync(join(tmpdir(), "km-"));
  private readonly unshare: ChildProcess;
  private init = 0;

  private constructor(
    readonly name: string,
    shared: readonly string[],
  ) {
    mkdirSync(join(this.dir, "m"));
    const namespaces = ["--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child"];
    const script = ["sh", "-c", SETUP, "setup", this.dir, name, ...shared];
    this.unshare = spawn("unshare", [...namespaces, "--propagation", "private", ...script], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.unshare.on("error", () => undefined);
  }

  /** Starts one that shares these directories with this machine, beside those of its root filesystem. */
  static async start(name: string, shared: readonly string[] = []): Promise<NodeMachine> {
    const machine = new NodeMachine(name, shared);
    let errors = "";
    machine.unshare.stderr?.setEncoding("utf8").on("data", (text: string) => (errors += text));
    try {
      await until(
        `the machine ${name}`,
        () => {
          if (machine.unshare.exitCode !== null) throw new Error(`make machine ${name}: ${errors}`);
          return existsSync(join(machine.dir, "made"));
        },
        { seen: () => errors },
      );
      machine.init = childOf(machine.unshare.pid ?? 0);
      return machine;
    } catch (error) {
      await machine.stop();
      throw error;
    }
  }

  /** Connects two machines by a cable, the ends of which have these addresses (`10.0.0.1/24`). */
  static connect([one, oneAddress]: [NodeMachine, string], [two, twoAddress]: [NodeMachine, string]): void {
    const ends = ["name", "eth0", "netns", String(one.init), "type", "veth", "peer", "name", "eth0"];
    execFileSync("ip", ["link", "add", ...ends, "netns", String(two.init)]);
    for (const [machine, address] of [[one, oneAddress] as const, [two, twoAddress] as const]) {
      machine.runSync("ip", "address", "add", address, "dev", "eth0");
      machine.runSync("ip", "link", "set", "eth0", "up");
    }
  }

  /** Runs a command to its end; fails with what it wrote if it fails. */
  async run(...command: readonly string[]): Promise<Finished> {
    return new Promise((resolve, reject) => {
      execFile("nsenter", [...this.enter(), ...command], { maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
        if (error === null) resolve({ stdout, stderr });
        else reject(new Error(`${this.name}: ${command.join(" ")}: ${error.message}\n${stdout}\n${stderr}`));
      });
    });
  }

  /** Runs a command with a file of this machine as its input. */
  async runWith(file: string, ...command: readonly string[]): Promise<void> {
    const input = openSync(file, "r");
    try {
      const child = spawn("nsenter", [...this.enter(), ...command], { stdio: [input, "ignore", "pipe"] });
      let errors = "";
      child.stderr?.setEncoding("utf8").on("data", (text: string) => (errors += text));
      const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
      if (code !== 0) throw new Error(`${this.name}: ${command.join(" ")}: code ${code}\n${errors}`);
    } finally {
      closeSync(input);
    }
  }

  runSync(...command: readonly string[]): string {
    return execFileSync("nsenter", [...this.enter(), ...command], { encoding: "utf8", maxBuffer: 64 << 20 });
  }

  /** Starts a command that goes on, with its output in a file. */
  start(log: string, command: readonly string[]): void {
    this.runSync("sh", "-c", 'log=$1; shift; setsid "$@" > "$log" 2>&1 < /dev/null &', "sh", log, ...command);
  }

  write(path: string, text: string, mode = 0o644): void {
    const script = 'mkdir -p "$1"; cat > "$2"; chmod "$3" "$2"';
    const args = ["sh", "-c", script, "sh", dirname(path), path, mode.toString(8)];
    execFileSync("nsenter", [...this.enter(), ...args], { input: text });
  }

  /** Returns the end of a file of the machine; empty if there is none. */
  tail(path: string, lines = 60): string {
    return this.runSync("sh", "-c", 'tail -n "$2" "$1" 2>/dev/null || :', "sh", path, String(lines));
  }

  /** Ends every process of the machine and removes its files, and the cgroup that it was given. */
  async stop(cgroup?: string): Promise<void> {
    if (this.unshare.exitCode === null && this.unshare.signalCode === null) {
      const gone = new Promise((resolve) => this.unshare.once("exit", resolve));
      // With its init the kernel ends every process of a namespace; the last of them takes its mounts along.
      if (this.init === 0) this.unshare.kill("SIGKILL");
      else process.kill(this.init, "SIGKILL");
      await gone;
    }
    if (cgroup !== undefined) await removeLeftovers({ dir: this.dir, socket: this.dir, bridge: "none", cgroup });
    await rm(this.dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  private enter(): string[] {
    return ["-t", String(this.init), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "--"];
  }
}

function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]);
}
