import { type ChildProcess, spawn } from "node:child_process";
import { type Abortable, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { HostError, hostError } from "./host-error.ts";

/** What a finished command left. Output past the limit is cut. */
export interface ExecResult {
  /** Exit code; undefined when a signal ended it. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** True if a contained command was killed because it wrote more than the limit. */
  readonly isCut?: boolean;
}

export interface ExecOptions extends Partial<Abortable> {
  readonly timeoutMs?: number;
  /** Given to the command's standard input, which is closed after it. */
  readonly input?: string;
  /** Bytes kept of each output; defaults to 1 MiB. */
  readonly maxOutputBytes?: number;
  /** Descriptors that the command gets from 3 on. */
  readonly descriptors?: readonly number[];
  /** Variables besides the agent's own; the locale is the agent's then, too. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * For programs of others: in a process group of its own, which is killed as a whole at an abort, at its time limit, if
   * it or its children write more than the limit, and once the command itself has ended.
   */
  readonly isContained?: boolean;
  /** Called once the process has ended: of a command that was killed while it hung in the kernel later, or never. */
  onExit?(): void;
  /** With `isContained`: what the command started goes on once it has ended by itself, as the daemon of a filesystem. */
  readonly mayLeaveChildren?: boolean;
}

const MAX_OUTPUT_BYTES = 1024 * 1024;
/** After its exit, how long a command's own children may hold its output open, in milliseconds. */
const DRAIN_MS = 500;

/**
 * Runs a command to its end, in the C locale. A non-zero exit is an answer, not an error. Rejects with `NotFound` when
 * there is no such command, with the signal's reason, or with a `TimeLimitError`; the command is killed then, and not
 * waited for: one that hangs in the kernel would never end.
 */
export async function exec(
  clock: Clock,
  [file, ...args]: readonly [string, ...string[]],
  options: ExecOptions = {},
): Promise<ExecResult> {
  const { signal, timeoutMs } = options;
  const limit = timeoutMs === undefined ? undefined : { clock, ms: timeoutMs };
  const scope = new AbortScope(signal === undefined ? [] : [signal], limit);
  try {
    scope.signal.throwIfAborted();
    return await finish(start([file, ...args], options), { ...options, clock, signal: scope.signal });
  } catch (error) {
    if (scope.signal.aborted) throw scope.signal.reason;
    throw hostError(file, error);
  } finally {
    scope.dispose();
  }
}

function start([file, ...args]: readonly [string, ...string[]], options: ExecOptions): ChildProcess {
  // Node would show the argument, which may be a password.
  if (args.some((arg) => arg.includes("\0")))
    throw new HostError("InvalidArgument", `${file}: an argument has a null byte`);
  return spawn(file, args, {
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe", ...(options.descriptors ?? [])],
    env: { ...process.env, ...(options.env ?? { LC_ALL: "C" }) },
    detached: options.isContained === true,
  });
}

/**
 * Resolves with what the command left once its output is closed, or a while after its exit. Exported for its test: which of
 * exit and output the agent sees first cannot be had from a real command.
 */
export function finish(child: ChildProcess, options: ExecOptions & Abortable & { clock: Clock }): Promise<ExecResult> {
  return new Promise((resolve, reject) => {
    const { signal, input, isContained = false, mayLeaveChildren = false } = options;
    const endsGroup = isContained && !mayLeaveChildren;
    let isCut = false;
    const onExcess = (): void => {
      if (!isContained || isCut) return;
      isCut = true;
      killAll(child, isContained);
    };
    const stdout = collect(child.stdout, { onExcess, limit: options.maxOutputBytes });
    const stderr = collect(child.stderr, { onExcess, limit: options.maxOutputBytes });
    const onAbort = (): void => {
      killAll(child, isContained);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
      child.unref();
      reject(signal.reason as Error);
    };
    const end = (code: number | null): void => {
      signal.removeEventListener("abort", onAbort);
      resolve({ code: code ?? undefined, stdout: stdout(), stderr: stderr(), ...(isCut && { isCut }) });
    };
    child.on("error", (error) => {
      signal.removeEventListener("abort", onAbort);
      reject(error);
    });
    child.on("exit", (code) => {
      options.onExit?.();
      let isClosed = false;
      const drained = (): void => {
        if (isClosed) return;
        if (endsGroup) killAll(child, isContained);
        for (const stream of [child.stdout, child.stderr]) stream?.destroy();
        end(code);
      };
      // If the event loop was delayed, what the command wrote is still to be read: that comes before immediates.
      const timer = options.clock.after(DRAIN_MS, () => void setImmediate(drained));
      child.on("close", () => {
        isClosed = true;
        timer.cancel();
        // Children that closed the output are still there.
        if (endsGroup) killAll(child, isContained);
        end(code);
      });
    });
    signal.addEventListener("abort", onAbort, { once: true });
    // A command that does not read its input is no error of ours.
    child.stdin?.on("error", () => undefined);
    if (input !== undefined) child.stdin?.end(input);
  });
}

/** Keeps the first bytes of a stream and reads the rest away, so that the command never waits for us. */
function collect(
  stream: ChildProcess["stdout"],
  { onExcess, limit = MAX_OUTPUT_BYTES }: { readonly onExcess: () => void; readonly limit: number | undefined },
): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream?.on("error", () => undefined);
  stream?.on("data", (chunk: Buffer) => {
    if (size < limit) chunks.push(chunk.subarray(0, limit - size));
    size += chunk.length;
    if (size > limit) onExcess();
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

/** Kills a command, and all its children that stayed in its process group. */
function killAll(child: ChildProcess, isGroup: boolean): void {
  if (!isGroup || child.pid === undefined) {
    child.kill("SIGKILL");
    return;
  }
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The group has no process any more.
  }
}
