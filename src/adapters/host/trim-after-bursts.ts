import type { Clock } from "../../lib/clock.ts";

/** glibc returns no memory by itself: it is trimmed this long after the last change of a burst, in milliseconds. */
const TRIM_AFTER_MS = 10_000;

/** Trims memory after each burst of changes until the signal aborts. Returns what to call at each change. */
export function trimAfterBursts(
  { clock, host }: { readonly clock: Clock; readonly host: { trimMemory(): void } },
  signal: AbortSignal,
): () => void {
  const start = () => clock.after(TRIM_AFTER_MS, () => host.trimMemory());
  let timer = start();
  signal.addEventListener("abort", () => timer.cancel(), { once: true });
  return () => {
    timer.cancel();
    if (!signal.aborted) timer = start();
  };
}
