import { linesOf } from "./lines.ts";
import { ask, RefusedError, signIn } from "./session.ts";

const RETRY_MS = 1000;
const LONGEST_RETRY_MS = 15_000;
/** A hidden page keeps its stream for so long, in milliseconds: looking at another tab for a moment costs nothing. */
const HIDDEN_MS = 10_000;

export type StreamState = "connecting" | "live" | "lost" | "paused" | "refused";

export interface StreamHooks<Line> {
  line(line: Line): void;
  state(state: StreamState, message?: string): void;
}

/** Follows a stream of JSON lines, with reconnects, while somebody looks at the page. Returns how to end it. */
export function follow<Line>(path: string, hooks: StreamHooks<Line>): () => void {
  let current: AbortController | undefined;
  let timer: number | undefined;
  let failures = 0;
  let isOver = false;

  const connect = async (): Promise<void> => {
    current?.abort();
    const own = new AbortController();
    current = own;
    hooks.state("connecting");
    try {
      const response = await ask(path, { signal: own.signal });
      for await (const line of linesOf(response)) {
        failures = 0;
        hooks.state("live");
        hooks.line(JSON.parse(line) as Line);
      }
      failures = 0;
      retry(own, 0);
    } catch (error) {
      if (own.signal.aborted) return;
      const isRefused = error instanceof RefusedError && error.status < 500;
      hooks.state(isRefused ? "refused" : "lost", error instanceof Error ? error.message : String(error));
      if (!isRefused) retry(own, Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** failures++));
    }
  };
  const retry = (own: AbortController, ms: number): void => {
    if (isOver || own !== current) return;
    current = undefined;
    if (!document.hidden) timer = window.setTimeout(() => void connect(), ms);
  };
  const onVisibility = (): void => {
    window.clearTimeout(timer);
    if (!document.hidden) {
      if (current === undefined || current.signal.aborted) void connect();
      return;
    }
    timer = window.setTimeout(() => {
      current?.abort();
      hooks.state("paused");
    }, HIDDEN_MS);
  };
  const unsubscribe = signIn.subscribe((missing) => {
    if (missing === undefined) void connect();
  });
  document.addEventListener("visibilitychange", onVisibility);
  return () => {
    isOver = true;
    window.clearTimeout(timer);
    document.removeEventListener("visibilitychange", onVisibility);
    unsubscribe();
    current?.abort();
  };
}
