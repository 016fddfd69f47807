import { readdir, readFile, realpath } from "node:fs/promises";
import type { Abortable } from "../../lib/abort.ts";
import { HostError } from "./host-error.ts";

/** Time limit of a command in milliseconds: the device may hang. */
const COMMAND_MS = 30_000;

/** Runs a command; `exec` does. */
type Run = (
  command: readonly [string, ...string[]],
  options: Partial<Abortable> & { timeoutMs: number },
) => Promise<{ readonly code: number | undefined; readonly stderr: string }>;

/**
 * Keeps block devices open by loop devices, as Kubernetes does: otherwise a device may be removed while a container uses
 * it, and another one appear under its name.
 */
export class DeviceLocks {
  constructor(
    private readonly run: Run,
    private readonly sysBlock = "/sys/block",
  ) {}

  /** Safe to repeat. */
  async lock(path: string, options: Abortable): Promise<void> {
    if ((await this.loopOf(path)) !== undefined) return;
    await this.losetup(["--find", path], options);
  }

  /** One that is not locked, or not there, is success. */
  async unlock(path: string, options: Abortable): Promise<void> {
    const loop = await this.loopOf(path);
    if (loop !== undefined) await this.losetup(["--detach", loop], options);
  }

  private async loopOf(path: string): Promise<string | undefined> {
    const real = await realpath(path).catch(() => path);
    const names = (await readdir(this.sysBlock).catch(() => [])).filter((name) => name.startsWith("loop"));
    for (const name of names) {
      const text = await readFile(`${this.sysBlock}/${name}/loop/backing_file`, "utf8").catch(() => "");
      const backing = text
        .trim()
        .replace(/\(deleted\)$/, "")
        .trim();
      if (backing !== "" && (backing === path || backing === real)) return `/dev/${name}`;
    }
    return undefined;
  }

  private async losetup(args: readonly string[], { signal }: Abortable): Promise<void> {
    const { code, stderr } = await this.run(["losetup", ...args], { signal, timeoutMs: COMMAND_MS });
    if (code !== 0) throw new HostError("Unknown", `losetup ${args.join(" ")}: ${stderr.trim() || `code ${code}`}`);
  }
}
