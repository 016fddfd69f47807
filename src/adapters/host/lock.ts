import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf } from "../../lib/errors.ts";
import { exec } from "./exec.ts";
import { HostError, hostError } from "./host-error.ts";
import { commandLine, isAlive, type ProcessIdentity, processStartTime } from "./processes.ts";
import { SystemCalls } from "./system-calls.ts";

/** An exclusive lock; the kernel ends it with the process, however that ends. */
export interface Lock {
  release(): void;
}

/** Who holds a lock, as it wrote itself into the file. */
export interface LockHolder extends ProcessIdentity {
  readonly command: string;
}

export interface LockDeps {
  readonly clock: Clock;
  readonly loadCalls?: () => Promise<SystemCalls | undefined>;
}

/** Takes the lock of a file, making the file if need be; `Locked` names the process that has it. Never waits. */
export async function takeLock(deps: LockDeps, path: string): Promise<Lock> {
  const fd = openLockFile(path);
  try {
    if (!(await tryLock(deps, fd))) throw new HostError("Locked", describe(path, readHolder(path)));
    const own: LockHolder = {
      pid: process.pid,
      startTime: processStartTime(process.pid) ?? "",
      command: commandLine(process.pid),
    };
    ftruncateSync(fd);
    writeSync(fd, `${JSON.stringify(own)}\n`, 0);
  } catch (error) {
    closeSync(fd);
    throw hostError(`lock ${path}`, error);
  }
  let isHeld = true;
  return {
    // The file stays: removing it would let two processes lock two files of one name.
    release: () => {
      if (!isHeld) return;
      isHeld = false;
      ftruncateSync(fd);
      closeSync(fd);
    },
  };
}

/** The process that holds the lock at this moment, or undefined if none does. */
export async function lockHolder(deps: LockDeps, path: string): Promise<LockHolder | undefined> {
  const file = await open(path, "r").catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
    throw hostError(`lock ${path}`, error);
  });
  if (file === undefined) return undefined;
  try {
    // A lock taken for this question alone is given back by the close.
    if (await tryLock(deps, file.fd)) return undefined;
  } finally {
    await file.close();
  }
  const holder = readHolder(path);
  return holder !== undefined && isAlive(holder) ? holder : undefined;
}

/** A bare descriptor: a FileHandle would close it when it is collected. */
function openLockFile(path: string): number {
  try {
    return openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (error) {
    throw hostError(`lock ${path}`, error);
  }
}

/** flock(2) belongs to the open file, so a child that gets our descriptor can take it for us. */
async function tryLock({ clock, loadCalls = () => SystemCalls.load() }: LockDeps, fd: number): Promise<boolean> {
  const calls = await loadCalls();
  if (calls === undefined) {
    const result = await exec(clock, ["flock", "--exclusive", "--nonblock", "3"], {
      descriptors: [fd],
      timeoutMs: 5000,
    });
    return result.code === 0;
  }
  try {
    await calls.lock(fd);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EAGAIN" || errnoOf(error) === "EWOULDBLOCK") return false;
    throw error;
  }
}

function readHolder(path: string): LockHolder | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof value !== "object" || value === null) return undefined;
    const { pid, startTime, command } = value as Partial<Record<keyof LockHolder, unknown>>;
    if (typeof pid !== "number" || typeof startTime !== "string") return undefined;
    return { pid, startTime, command: typeof command === "string" ? command : "" };
  } catch {
    // Not written yet, or by somebody else.
    return undefined;
  }
}

function describe(path: string, holder: LockHolder | undefined): string {
  if (holder === undefined) return `${path} is held by another process`;
  const command = holder.command === "" ? "" : ` (${holder.command})`;
  return `${path} is held by process ${holder.pid}${command}`;
}
