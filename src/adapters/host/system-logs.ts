import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Abortable, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { exec } from "./exec.ts";

/** One name of a directory. */
interface Entry {
  readonly name: string;
  readonly isDirectory: boolean;
}

/** Longest search of the journal. */
const JOURNAL_MS = 30_000;
const BLOCK = 64 * 1024;
const MOST_ENTRIES = 10_000;

/** The host's logs below one directory, and its journal. Links that lead out of the directory are not there. */
export class HostSystemLogs {
  constructor(
    private readonly clock: Clock,
    private readonly root: string,
  ) {}

  /** What is at a path, or undefined when nothing that may be seen is. */
  async look(
    path: string,
  ): Promise<
    { kind: "directory"; entries: readonly Entry[] } | { kind: "file"; size: number; modifiedMs: number } | undefined
  > {
    const inside = await this.resolve(path);
    if (inside === undefined) return undefined;
    try {
      const found = await stat(inside);
      if (found.isFile()) return { kind: "file", size: found.size, modifiedMs: found.mtimeMs };
      if (!found.isDirectory()) return undefined; // pipes and devices could block or never end
      const names = await readdir(inside, { withFileTypes: true });
      const entries = names
        .slice(0, MOST_ENTRIES)
        .map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
      return { kind: "directory", entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)) };
    } catch {
      return undefined; // gone meanwhile, or no permission: to the client it is all the same
    }
  }

  /** A part of a file, in blocks that share one buffer: use each before the next is asked for. */
  async *read(path: string, range: { from: number; to: number }, { signal }: Abortable): AsyncGenerator<Uint8Array> {
    const inside = await this.resolve(path);
    if (inside === undefined) return;
    const handle = await open(inside, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
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
  }

  /** Whether the journal has anything of this unit. */
  async knowsUnit(unit: string, { signal }: Abortable): Promise<boolean> {
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

  private async resolve(path: string): Promise<string | undefined> {
    if (path.includes("\0")) return undefined;
    try {
      const [root, target] = await Promise.all([realpath(this.root), realpath(join(this.root, path))]);
      return target === root || target.startsWith(`${root}/`) ? target : undefined;
    } catch {
      return undefined;
    }
  }
}
