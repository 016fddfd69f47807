import { type Abortable, AbortScope, isAborted } from "./abort.ts";

/** A part that runs as long as the agent: `run` resolves once the signal aborts, and earlier only by an error. */
export interface Loop {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

/** Resolves once the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Runs `main` with `beside` next to it: the end of `main` ends `beside`, and a failure of either one ends the other. */
export async function runBeside(
  main: (options: Abortable) => Promise<void>,
  beside: ((signal: AbortSignal) => Promise<void>) | undefined,
  parent: Abortable,
): Promise<void> {
  const scope = new AbortScope([parent.signal]);
  const endWith = (error: unknown): never => {
    scope.abort(error);
    throw error;
  };
  try {
    const other = beside?.(scope.signal).catch(endWith);
    const first = main(scope).then(() => scope.abort(), endWith);
    for (const end of await Promise.allSettled([first, other])) if (end.status === "rejected") throw end.reason;
  } finally {
    scope.dispose();
  }
}

/** Runs all loops until `stop` aborts. A loop that fails, or returns earlier, aborts `stop` and with it the others. */
export async function runLoops(loops: readonly Loop[], stop: AbortController): Promise<void> {
  const { signal } = stop;
  const guard = async (loop: Loop): Promise<void> => {
    try {
      await loop.run(signal);
      if (!signal.aborted) throw new Error(`loop "${loop.name}" returned before the agent stopped`);
    } catch (error) {
      if (isAborted(error, signal)) return;
      stop.abort(error);
      throw error;
    }
  };
  await Promise.all(loops.map(guard));
}
