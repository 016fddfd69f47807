import { type ChildProcess, spawn } from "node:child_process";
import { type Abortable, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { hostError } from "./host-error.ts";

/** What a finished command left. Output past the limit is cut. */
export interface ExecResult {
  /** Exit code; undefined when a signal ended it. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ExecOptions extends Partial<Abortable> {
  readonly timeoutMs?: number;
  /** Given to the command's standard input, which is closed after it. */
  readonly input?: string;
  /** Bytes kept of each output; defaults to 1 MiB. */
  readonly maxOutputBytes?: number;
  /** Descriptors that the command gets from 3 on. */
  readonly descriptors?: readonly number[];
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
  return spawn(file, args, {
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe", ...(options.descriptors ?? [])],
    env: { ...process.env, LC_ALL: "C" },
  });
}

function finish(child: ChildProcess, options: ExecOptions & Abortable & { clock: Clock }): Promise<ExecResult> {
  return new Promise((resolve, reject) => {
    const stdout = collect(child.stdout, options.maxOutputBytes);
    const stderr = collect(child.stderr, options.maxOutputBytes);
    const { signal, input } = options;
    const onAbort = (): void => {
      child.kill("SIGKILL");
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
      child.unref();
      reject(signal.reason as Error);
    };
    const end = (code: number | null): void => {
      signal.removeEventListener("abort", onAbort);
      resolve({ code: code ?? undefined, stdout: stdout(), stderr: stderr() });
    };
    child.on("error", (error) => {
      signal.removeEventListener("abort", onAbort);
      reject(error);
    });
    child.on("exit", (code) => {
      const timer = options.clock.after(DRAIN_MS, () => {
        for (const stream of [child.stdout, child.stderr]) stream?.destroy();
        end(code);
      });
      child.on("close", () => {
        timer.cancel();
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
function collect(stream: ChildProcess["stdout"], limit = MAX_OUTPUT_BYTES): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream?.on("error", () => undefined);
  stream?.on("data", (chunk: Buffer) => {
    if (size < limit) chunks.push(chunk.subarray(0, limit - size));
    size += chunk.length;
  });
  return () => Buffer.concat(chunks).toString("utf8");
}
