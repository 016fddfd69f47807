import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Why no filesystem in a file can be mounted here, or undefined when one can. */
export function whyNoLoop(): string | undefined {
  if (process.getuid?.() !== 0) return "not root";
  if (spawnSync("mkfs.ext4", ["-V"]).error !== undefined) return "not installed: mkfs.ext4";
  return spawnSync("losetup", ["-f"]).status === 0 ? undefined : "no loop device";
}

/** A small filesystem of its own, in a file. `close` leaves nothing behind. */
export class LoopFilesystem {
  private readonly dir = mkdtempSync(join(tmpdir(), "l-"));
  /** Where it is mounted. */
  readonly path = join(this.dir, "m");

  constructor(readonly megabytes: number) {
    const file = join(this.dir, "f");
    writeFileSync(file, "");
    truncateSync(file, megabytes * 1024 * 1024);
    mkdirSync(this.path);
    execFileSync("mkfs.ext4", ["-q", "-m", "0", "-O", "^has_journal", file]);
    execFileSync("mount", ["-o", "loop", file, this.path]);
  }

  close(): void {
    execFileSync("umount", [this.path]);
    rmdirSync(this.path);
    rmSync(this.dir, { recursive: true });
  }
}
