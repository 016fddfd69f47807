import type { ImagePort, PullProgress } from "../adapters/runtime/port.ts";
import { type Abortable, AbortScope, withScope } from "../lib/abort.ts";
import type { Clock, Instant, Timer } from "../lib/clock.ts";
import type { Live } from "../lib/live.ts";
import { ago, bytesWords } from "../lib/table.ts";
import type { StepProgress } from "../model/step.ts";
import type { PullWork } from "./shared-pulls.ts";

/** How often the runtime is asked how far the pulls are, and how long it may take to answer, in milliseconds. */
const POLL_MS = 1000;
const ANSWER_MS = 5000;
/** The rate is that of the last seconds. */
const RATE_MS = 10_000;

/** A pull was cancelled because nothing arrived for as long as `imagePullProgressTimeout` allows. */
export class StuckPullError extends Error {
  override readonly name = "StuckPullError";
}

interface WatchedPull {
  readonly image: string;
  readonly began: Instant;
  readonly work: PullWork;
  readonly scope: AbortScope;
  /** Bytes by monotonic time, oldest first. */
  samples: readonly { readonly at: number; readonly bytes: number }[];
  /** Monotonic time at which something arrived last. */
  movedAt: number;
  /** True once the manifest has arrived. */
  hasManifest: boolean;
}

/**
 * Asks the runtime once a second how far the running pulls are, in one call for all, reports it to each, and cancels
 * those that are stuck. Without a pull, and for pulls of less than a second, it does nothing.
 */
export class PullProgressWatch {
  private readonly pulls = new Set<WatchedPull>();
  private timer: Timer | undefined;
  private isPolling = false;

  constructor(
    private readonly deps: { images: Pick<ImagePort, "pullProgress">; clock: Clock },
    /** `progressTimeoutMs` 0: a pull may stand still for ever. */
    private readonly options: Live<{ readonly progressTimeoutMs: number }>,
  ) {}

  /** Runs a pull and reports how far it is. Rejects with a `StuckPullError` if the pull was cancelled as stuck. */
  async during<T>(image: string, work: PullWork, pull: (options: Abortable) => Promise<T>): Promise<T> {
    const began = this.deps.clock.now();
    const scope = new AbortScope([work.signal]);
    const watched: WatchedPull = { image, began, work, scope, samples: [], movedAt: began.mono, hasManifest: false };
    this.pulls.add(watched);
    this.schedule();
    try {
      return await pull({ signal: scope.signal });
    } finally {
      this.pulls.delete(watched);
      scope.dispose();
      if (this.pulls.size === 0) this.timer?.cancel();
      if (this.pulls.size === 0) this.timer = undefined;
    }
  }

  private schedule(): void {
    if (this.isPolling || this.pulls.size === 0) return;
    this.timer ??= this.deps.clock.after(POLL_MS, () => void this.poll());
  }

  private async poll(): Promise<void> {
    const { images, clock } = this.deps;
    this.timer = undefined;
    this.isPolling = true;
    const asked = [...this.pulls];
    const running = asked.map(({ image, began }) => ({ image, since: began.wall }));
    const ask = (signal: AbortSignal): ReturnType<ImagePort["pullProgress"]> =>
      images.pullProgress(running, { signal });
    let isReported = true;
    try {
      const found = await withScope([], { clock, ms: ANSWER_MS }, ask);
      isReported = found !== undefined;
      if (found !== undefined) this.take(asked, found);
    } catch {
      // The pulls themselves tell what is wrong with the runtime; the next look may succeed.
    }
    this.isPolling = false;
    // A runtime that reports no progress is asked again with the next pull.
    if (isReported) this.schedule();
  }

  private take(asked: readonly WatchedPull[], found: ReadonlyMap<string, PullProgress>): void {
    const now = this.deps.clock.now().mono;
    const moved = new Set<WatchedPull>();
    for (const pull of asked) {
      const progress = found.get(pull.image);
      if (progress === undefined || !this.pulls.has(pull)) continue;
      const before = pull.samples.at(-1)?.bytes;
      pull.samples = [...pull.samples.filter(({ at }) => now - at <= RATE_MS), { at: now, bytes: progress.doneBytes }];
      const hasManifest = progress.totalBytes !== undefined;
      const isNew = progress.doneBytes !== (before ?? 0) || hasManifest !== pull.hasManifest;
      pull.hasManifest = hasManifest;
      // An image is unpacked after its last byte: that takes as long as it takes.
      if (isNew || isComplete(progress)) moved.add(pull);
      pull.work.onDetail({ text: textOf(progress), progress: stepProgress(pull, progress) });
    }
    for (const pull of asked) {
      const progress = found.get(pull.image);
      if (progress === undefined) continue;
      // A pull that has no transfer of its own may wait for the runtime, which limits transfers.
      const isWaiting = !progress.isTransferring && moved.size > 0;
      if (moved.has(pull) || isWaiting) pull.movedAt = now;
      if (progress.oversized !== undefined) {
        pull.scope.abort(new Error(`registry sent more bytes of blob ${progress.oversized} than the manifest says`));
      }
      const limitMs = this.options.current.progressTimeoutMs;
      if (limitMs > 0 && now - pull.movedAt >= limitMs) pull.scope.abort(stuck(progress, limitMs));
    }
  }
}

function isComplete({ doneBytes, totalBytes }: PullProgress): boolean {
  return totalBytes !== undefined && doneBytes >= totalBytes;
}

function textOf(progress: PullProgress): string {
  const doing = isComplete(progress) ? "unpacking" : "pulling";
  return progress.isShared === true ? `${doing}, counted with other tags of the repository` : doing;
}

/** What is shown of a pull: bytes, rate and the time that is left at this rate. */
function stepProgress({ samples }: WatchedPull, { doneBytes, totalBytes }: PullProgress): StepProgress {
  const [first, last] = [samples[0], samples.at(-1)];
  const spanMs = (last?.at ?? 0) - (first?.at ?? 0);
  const total = totalBytes === undefined ? {} : { totalBytes };
  if (spanMs <= 0) return { doneBytes, ...total };
  const bytesPerSecond = Math.max(0, Math.round((((last?.bytes ?? 0) - (first?.bytes ?? 0)) * 1000) / spanMs));
  const left = (totalBytes ?? 0) - doneBytes;
  const remaining = left > 0 && bytesPerSecond > 0 ? { remainingMs: Math.round((left * 1000) / bytesPerSecond) } : {};
  return { doneBytes, ...total, bytesPerSecond, ...remaining };
}

function stuck({ doneBytes, totalBytes }: PullProgress, limitMs: number): StuckPullError {
  const where =
    totalBytes === undefined
      ? "before the registry sent the image's manifest"
      : `after ${bytesWords(doneBytes)} of ${bytesWords(totalBytes)} bytes`;
  return new StuckPullError(`pull made no progress for ${ago(limitMs)} (imagePullProgressTimeout) ${where}`);
}
