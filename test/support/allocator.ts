import type { Abortable } from "../../src/lib/abort.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Allocator, AllocatorAnswer } from "../../src/pods/index.ts";

/** Gives each pod one of the machine's cards. */
export class FakeAllocator implements Allocator {
  readonly name = "cards";
  readonly given = new Map<string, string>();
  /** Names of the pods that it was asked for. */
  readonly asked: string[] = [];
  fault: Error | undefined;
  takesMs = 0;
  /** The only pod that it takes so long for, and that has the fault; all if missing. */
  slow: string | undefined;
  clock: Clock | undefined;
  held?: () => Iterable<string>;

  constructor(private readonly cards: readonly string[]) {}

  async allocate({ metadata }: Pod, options: Abortable): Promise<AllocatorAnswer> {
    this.asked.push(metadata.name ?? "");
    const taken = new Set(this.given.values());
    const free = this.cards.find((card) => !taken.has(card));
    if (free !== undefined) this.given.set(metadata.uid ?? "", free);
    if (this.slow === undefined || this.slow === metadata.name) {
      await this.clock?.sleep(this.takesMs, options);
      if (this.fault !== undefined) throw this.fault;
    }
    return free === undefined ? { rejection: { reason: "NoCard", message: "no card is free" } } : { allocation: free };
  }

  release(uid: string): void {
    this.given.delete(uid);
  }

  restore(records: ReadonlyMap<string, unknown>): void {
    for (const [uid, card] of records) this.given.set(uid, String(card));
  }
}
