import type { Clock } from "../lib/clock.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import { Lane } from "../lib/lane.ts";
import { type Live, select } from "../lib/live.ts";
import { TokenBucket } from "../lib/token-bucket.ts";
import type { PullWork } from "./shared-pulls.ts";

export interface PullQueueOptions {
  /** Maximum number of parallel pulls; 1 pulls serially, 0 has no limit. */
  readonly parallel: number;
  /** Pulls begun per second; 0 has no limit. */
  readonly qps: number;
  readonly burst: number;
}

/** One pull that waits for its turn. */
export interface QueuedPull<T> {
  readonly image: string;
  /** Called after another pull of the same image; if it resolves to a result, there is no pull. */
  arrived(): Promise<T | undefined>;
  pull(): Promise<T>;
  /** Called with what the pull resolved to. Only the next pull of the same image waits for it. */
  pulled(result: T): Promise<void>;
}

/**
 * The order of pulls: one at a time for an image, a limited number of images at once, and so many begun per second. What
 * waits reports behind how many pulls; it never fails.
 */
export class PullQueue {
  private readonly lane: Lane;
  private readonly bucket: TokenBucket;
  private readonly images = new KeyedMutex();
  /** Pulls of each image that run or wait. */
  private readonly counts = new Map<string, number>();

  constructor(
    clock: Clock,
    private readonly options: Live<PullQueueOptions>,
    signal: AbortSignal,
  ) {
    this.bucket = new TokenBucket(clock, options);
    this.lane = new Lane(
      select(options, ({ parallel }) => parallel),
      { signal },
    );
  }

  /** Runs the pull when its turn comes. Aborted while it waits: leaves the queue and rejects with the signal's reason. */
  async run<T>(pull: QueuedPull<T>, work: PullWork): Promise<T> {
    const ahead = this.counts.get(pull.image) ?? 0;
    this.counts.set(pull.image, ahead + 1);
    if (ahead > 0) waits(work, `${behind(ahead)} of the same image`);
    const alone = async (): Promise<T> => {
      const arrived = ahead > 0 ? await pull.arrived() : undefined;
      if (arrived !== undefined) return arrived;
      const result = await this.inTurn(pull, work);
      await pull.pulled(result);
      return result;
    };
    try {
      return await this.images.run(pull.image, alone, work);
    } finally {
      const left = (this.counts.get(pull.image) ?? 1) - 1;
      if (left === 0) this.counts.delete(pull.image);
      else this.counts.set(pull.image, left);
    }
  }

  private inTurn<T>({ pull }: QueuedPull<T>, work: PullWork): Promise<T> {
    const onPosition = (position: number): void => {
      if (position > 0) waits(work, behind(this.lane.running + position - 1));
    };
    const onAhead = (ahead: number): void => {
      const limit = `(registryPullQPS ${this.options.current.qps})`;
      waits(work, ahead === 0 ? `next to be pulled ${limit}` : `${behind(ahead)} ${limit}`);
    };
    const begin = async (): Promise<T> => {
      await this.bucket.take({ signal: work.signal, onAhead });
      return pull();
    };
    return this.lane.run(begin, { signal: work.signal, onPosition });
  }
}

function waits(work: PullWork, text: string): void {
  work.onDetail({ text, isWaiting: true });
}

function behind(pulls: number): string {
  return `waiting behind ${pulls} ${pulls === 1 ? "pull" : "pulls"}`;
}
