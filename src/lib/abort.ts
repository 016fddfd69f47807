import { setMaxListeners } from "node:events";
import type { Clock, Timer } from "./clock.ts";

export type { Abortable } from "./abortable.ts";

/** The reason of an abort that was asked for: quiet, never logged as an error. */
export class AbortedError extends Error {
  override readonly name = "AbortedError";
  constructor(message = "aborted") {
    super(message);
  }
}

/** The reason of an abort that a scope's own time limit caused. */
export class TimeLimitError extends Error {
  override readonly name = "TimeLimitError";
  constructor(readonly limitMs: number) {
    super(`time limit of ${limitMs} ms exceeded`);
  }
}

/**
 * One signal made of several, with an optional time limit on the injected clock.
 * `AbortSignal.any` leaks on Node 20 and 22 and `AbortSignal.timeout` ignores the clock, so this is the only combiner.
 * Dispose it in `finally`: that unhooks the parents and stops the timer.
 */
export class AbortScope {
  private readonly controller = manyListeners();
  /** Its own property, not a getter: a scope is spread into the options of calls. */
  readonly signal: AbortSignal = this.controller.signal;
  private readonly parents: readonly AbortSignal[];
  private timer: Timer | undefined;
  private readonly onParent = (event: Event): void => {
    // Only ever added to AbortSignals, below.
    this.abort((event.target as AbortSignal).reason);
  };

  constructor(parents: readonly AbortSignal[], limit?: { clock: Clock; ms: number }) {
    this.parents = parents;
    for (const parent of parents) {
      if (parent.aborted) this.abort(parent.reason);
      else parent.addEventListener("abort", this.onParent);
    }
    if (limit !== undefined && !this.signal.aborted) {
      this.timer = limit.clock.after(limit.ms, () => this.abort(new TimeLimitError(limit.ms)));
    }
  }

  /** Aborts this scope only, never its parents. */
  abort(reason: unknown = new AbortedError()): void {
    if (this.signal.aborted) return;
    this.timer?.cancel();
    this.controller.abort(reason);
  }

  dispose(): void {
    this.timer?.cancel();
    for (const parent of this.parents) parent.removeEventListener("abort", this.onParent);
  }
}

/** Runs `work` inside a scope and disposes it, whatever happens. */
export async function withScope<T>(
  parents: readonly AbortSignal[],
  limit: { clock: Clock; ms: number } | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const scope = new AbortScope(parents, limit);
  try {
    return await work(scope.signal);
  } finally {
    scope.dispose();
  }
}

/** True when `error` is only the echo of this signal's abort (a time limit is not: that is a failure of its own). */
export function isAborted(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted || signal.reason instanceof TimeLimitError) return false;
  return (
    error === signal.reason || error instanceof AbortedError || (error instanceof Error && error.name === "AbortError")
  );
}

/** A controller whose signal many may listen to: Node's warning about eleven listeners is for leaks, which these are not. */
export function manyListeners(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

const sets = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls for when the signal aborts: add one, and delete it when it is not wanted any more. For signals that hundreds of
 * short calls a second use in turn: a listener of an AbortSignal costs as much as the rest of such a call, and here a
 * signal gets one for its whole life. A signal that is already aborted makes no call.
 */
export function abortCalls(signal: AbortSignal): Set<() => void> {
  const known = sets.get(signal);
  if (known !== undefined) return known;
  const calls = new Set<() => void>();
  sets.set(signal, calls);
  const onAbort = (): void => {
    for (const call of calls) call();
    calls.clear();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return calls;
}
