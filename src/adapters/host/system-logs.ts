import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { open, readdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { type Abortable, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { exec } from "./exec.ts";
import { HostError } from "./host-error.ts";
import { closeDescriptor, O_PATH, openInside, openRegularFile, statDescriptor } from "./open-inside.ts";
import { SystemCalls } from "./system-calls.ts";

/** One name of a directory. */
interface Entry {
  readonly name: string;
  readonly isDirectory: boolean;
}

/** Longest search of the journal. */
const JOURNAL_MS = 30_000;
const BLOCK = 64 * 1024;
const MOST_ENTRIES = 10_000;

/**
 * The host's logs below one directory, and its journal. A link that leads out of the directory is treated as missing,
 * also one that is swapped in while a request is served: what is read is opened below the directory by the kernel.
 */
export class HostSystemLogs {
  constructor(
    private readonly clock: Clock,
    private readonly root: string,
  ) {}

  /** Returns what is at a path, or undefined if there is nothing that may be shown. */
  async look(
    path: string,
  ): Promise<
    { kind: "directory"; entries: readonly Entry[] } | { kind: "file"; size: number; modifiedMs: number } | undefined
  > {
    const fd = await this.open(path);
    if (fd === undefined) return undefined;
    try {
      const found = await statDescriptor(fd);
      if (found.isFile()) return { kind: "file", size: found.size, modifiedMs: found.mtimeMs };
      if (!found.isDirectory()) return undefined; // pipes and devices could block or never end
      const names = await readdir(`/proc/self/fd/${fd}`, { withFileTypes: true });
      const entries = names
        .slice(0, MOST_ENTRIES)
        .map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
      return { kind: "directory", entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)) };
    } catch {
      return undefined; // removed meanwhile, or no permission
    } finally {
      await closeDescriptor(fd);
    }
  }

  /** A part of a file, in blocks that share one buffer: use each before the next is asked for. */
  async *read(path: string, range: { from: number; to: number }, { signal }: Abortable): AsyncGenerator<Uint8Array> {
    const fd = await this.open(path);
    if (fd === undefined) return;
    try {
      const handle = await openRegularFile(fd, path);
      try {
        const buffer = Buffer.alloc(BLOCK);
        for (let at = range.from; at < range.to && !signal.aborted; ) {
          const { bytesRead } = await handle.read(buffer, 0, Math.min(BLOCK, range.to - at), at);
          if (bytesRead === 0) return;
          at += bytesRead;
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        await handle.close();
      }
    } finally {
      await closeDescriptor(fd);
    }
  }

  /** Whether the journal has anything of this unit. */
  async hasUnit(unit: string, { signal }: Abortable): Promise<boolean> {
    try {
      const limit = { signal, timeoutMs: JOURNAL_MS, maxOutputBytes: 4 * 1024 * 1024 };
      const { stdout } = await exec(this.clock, ["journalctl", "--field", "_SYSTEMD_UNIT"], limit);
      const units = new Set(stdout.split("\n"));
      return units.has(unit) || units.has(`${unit}.service`);
    } catch {
      signal.throwIfAborted();
      return false; // a host without a journal
    }
  }

  /** What journalctl says, as it says it, for at most 30 s. */
  async *journal(args: readonly string[], { signal }: Abortable): AsyncGenerator<Uint8Array> {
    const scope = new AbortScope([signal], { clock: this.clock, ms: JOURNAL_MS });
    const child = spawn("journalctl", args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, LC_ALL: "C" },
    });
    let failure: Error | undefined;
    child.on("error", (error) => {
      failure = error;
    });
    child.stderr
      .on("error", () => undefined)
      .on("data", (words: Buffer) => {
        failure ??= new Error(words.toString("utf8").trim());
      });
    const kill = (): void => void child.kill("SIGKILL");
    scope.signal.addEventListener("abort", kill, { once: true });
    try {
      for await (const chunk of child.stdout) yield chunk as Buffer; // reason: no encoding is set, so chunks are buffers
      scope.signal.throwIfAborted();
      if (failure !== undefined) throw failure;
    } finally {
      kill();
      scope.dispose();
    }
  }

  /**
   * Opens a path as an O_PATH descriptor; undefined if nothing is there or it lies outside. `realpath` only rewrites
   * links with absolute targets inside the root, which openat2 would refuse; whether the result is inside is decided by
   * openat2 alone.
   */
  private async open(path: string): Promise<number | undefined> {
    if (path.includes("\0")) return undefined;
    const calls = await SystemCalls.load();
    if (calls === undefined) throw new HostError("Unsupported", "read system logs: openat2 is not available");
    try {
      const [root, target] = await Promise.all([realpath(this.root), realpath(join(this.root, path))]);
      if (target !== root && !target.startsWith(`${root}/`)) return undefined;
      const directory = await open(root, O_PATH | constants.O_DIRECTORY);
      try {
        return await openInside(calls, directory.fd, target.slice(root.length + 1) || ".");
      } finally {
        await directory.close();
      }
    } catch {
      return undefined; // missing, outside, or no permission: all the same to the client
    }
  }
}
