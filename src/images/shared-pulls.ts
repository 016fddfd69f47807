import { type Abortable, AbortedError, AbortScope } from "../lib/abort.ts";

type Pulled = { readonly ref: string; readonly tookMs: number };
type Pull = (image: string, work: Abortable & { onDetail(text: string): void }) => Promise<Pulled>;

interface Shared {
  readonly scope: AbortScope;
  readonly result: Promise<Pulled>;
  readonly listeners: Set<(text: string) => void>;
  /** What was told last, for those who join later. */
  detail: string | undefined;
  waiters: number;
}

/** Lets callers who want the same image share one pull; it is cancelled only when nobody is left who wants it. */
export class SharedPulls {
  private readonly running = new Map<string, Shared>();

  constructor(
    private readonly pull: Pull,
    private readonly agent: AbortSignal,
  ) {}

  /** Joins the pull of this image, or begins it. An abort only ends this caller's waiting. */
  async join(image: string, caller: Abortable & { onDetail(text: string): void }): Promise<Pulled> {
    const shared = this.running.get(image) ?? this.begin(image);
    shared.waiters++;
    shared.listeners.add(caller.onDetail);
    if (shared.detail !== undefined) caller.onDetail(shared.detail);
    try {
      return await orAborted(shared.result, caller.signal);
    } finally {
      shared.listeners.delete(caller.onDetail);
      if (--shared.waiters === 0) shared.scope.abort(new AbortedError("nobody wants the image any more"));
    }
  }

  private begin(image: string): Shared {
    const scope = new AbortScope([this.agent]);
    const listeners = new Set<(text: string) => void>();
    const onDetail = (text: string): void => {
      shared.detail = text;
      for (const listener of listeners) listener(text);
    };
    // An ended or given-up pull must not take the next one of the same image off the list.
    const leave = (): void => {
      if (this.running.get(image) === shared) this.running.delete(image);
    };
    // A turn later, so that `shared` is there when the pull tells its first detail.
    const result = Promise.resolve()
      .then(() => this.pull(image, { signal: scope.signal, onDetail }))
      .finally(() => {
        leave();
        scope.dispose();
      });
    // Whoever joined hears the error; when all of them left, nobody needs to.
    result.catch(() => undefined);
    const shared: Shared = { scope, result, listeners, detail: undefined, waiters: 0 };
    this.running.set(image, shared);
    scope.signal.addEventListener("abort", leave, { once: true });
    return shared;
  }
}

function orAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    result.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
