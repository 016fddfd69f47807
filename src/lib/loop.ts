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
