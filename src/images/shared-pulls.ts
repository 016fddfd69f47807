import { type Abortable, AbortedError, AbortScope } from "../lib/abort.ts";
import { orAborted } from "../lib/or-aborted.ts";
import type { StepProgress } from "../model/step.ts";

/** What a finished pull resolves to: the image reference, and the time the runtime took. */
export interface PulledImage {
  readonly ref: string;
  readonly tookMs: number;
  /** Index of the credential that the registry accepted; undefined for an anonymous pull. */
  readonly credential?: number;
  /** True if another pull had brought the image, and the pod may use it. */
  readonly isReused?: boolean;
}

/** What a pull waits for, or how far it is. */
export interface PullDetail {
  readonly text: string;
  readonly progress?: StepProgress;
  /** True while the pull waits for its turn. */
  readonly isWaiting?: boolean;
}

/** What a pull is given: the signal that cancels it, and where it reports its progress. */
export interface PullWork extends Abortable {
  onDetail(detail: PullDetail): void;
}

/** One caller of a pull; `pull` runs only if no equal pull is under way. */
export interface PullCaller extends PullWork {
  pull(work: PullWork): Promise<PulledImage>;
}

interface Shared {
  readonly scope: AbortScope;
  readonly result: Promise<PulledImage>;
  readonly listeners: Set<(detail: PullDetail) => void>;
  /** The last progress report, for callers that join later. */
  detail: PullDetail | undefined;
  waiters: number;
}

/** Lets callers with the same key share one pull; the pull is cancelled only when its last caller leaves. */
export class SharedPulls {
  private readonly running = new Map<string, Shared>();

  constructor(private readonly agent: AbortSignal) {}

  /** Joins the pull with this key, or starts the caller's. An abort only ends this caller's waiting. */
  async join(key: string, caller: PullCaller): Promise<PulledImage> {
    const shared = this.running.get(key) ?? this.begin(key, caller);
    shared.waiters++;
    shared.listeners.add(caller.onDetail);
    if (shared.detail !== undefined) caller.onDetail(shared.detail);
    try {
      return await orAborted(shared.result, caller.signal);
    } finally {
      shared.listeners.delete(caller.onDetail);
      if (--shared.waiters === 0) shared.scope.abort(new AbortedError("no caller waits for the image"));
    }
  }

  private begin(key: string, { pull }: PullCaller): Shared {
    const scope = new AbortScope([this.agent]);
    const listeners = new Set<(detail: PullDetail) => void>();
    const onDetail = (detail: PullDetail): void => {
      shared.detail = detail;
      for (const listener of listeners) listener(detail);
    };
    // A finished or cancelled pull must not remove the next one with the same key.
    const leave = (): void => {
      if (this.running.get(key) === shared) this.running.delete(key);
    };
    // A turn later, so that `shared` is assigned when the pull reports its first detail.
    const result = Promise.resolve()
      .then(() => pull({ signal: scope.signal, onDetail }))
      .finally(() => {
        leave();
        scope.dispose();
      });
    // Every caller that joined gets the error; if all of them left, it is ignored.
    result.catch(() => undefined);
    const shared: Shared = { scope, result, listeners, detail: undefined, waiters: 0 };
    this.running.set(key, shared);
    scope.signal.addEventListener("abort", leave, { once: true });
    return shared;
  }
}
