import type { Abortable } from "../../src/lib/abort.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Rejection } from "../../src/model/rejection.ts";
import type { Allocator, AllocatorAnswer, ReadmissionAnswer } from "../../src/pods/index.ts";

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
  /** It goes on when it is told to stop, as a plugin may. */
  ignoresAbort = false;
  held?: () => Iterable<string>;
  /** What it answers for pods that it gave something before. */
  again: ReadmissionAnswer;
  /** Pods of an earlier agent that it was asked about, with the CPU limit of their first container. */
  readonly adopted: string[] = [];
  /** Called before each of these answers. */
  onAdopt: (() => void) | undefined;
  /** What it answers for them. */
  lack: Rejection | undefined;
  /** Names of pods of an earlier agent that it has nothing of. */
  readonly lacking = new Set<string>();
  /** Names of pods that need nothing of it. */
  readonly content = new Set<string>();
  /** What it answers for a pod that is to be rejected, or that others are to end for. */
  unmet: Rejection | undefined;
  /** How long that takes. */
  adoptsMs = 0;

  constructor(private readonly cards: readonly string[]) {}

  async allocate({ metadata }: Pod, options: Abortable): Promise<AllocatorAnswer> {
    this.asked.push(metadata.name ?? "");
    const taken = new Set(this.given.values());
    const free = this.cards.find((card) => !taken.has(card));
    if (free !== undefined) this.given.set(metadata.uid ?? "", free);
    if (this.slow === undefined || this.slow === metadata.name) {
      await this.clock?.sleep(this.takesMs, this.ignoresAbort ? {} : options);
      if (this.fault !== undefined) throw this.fault;
    }
    return free === undefined ? { rejection: { reason: "NoCard", message: "no card is free" } } : { allocation: free };
  }

  readmit({ metadata }: Pod): ReadmissionAnswer {
    return this.given.has(metadata.uid ?? "") ? this.again : undefined;
  }

  async adopt({ metadata, spec }: Pod, options: Abortable): Promise<Rejection | undefined> {
    this.adopted.push([metadata.name, spec.containers[0]?.resources?.limits?.["cpu"]].join(" ").trim());
    this.onAdopt?.();
    if (this.adoptsMs > 0) await this.clock?.sleep(this.adoptsMs, options);
    if (this.fault !== undefined) throw this.fault;
    this.lacking.delete(metadata.name ?? "");
    return this.lack;
  }

  isLackedBy({ metadata: { name = "", uid = "" } }: Pod): boolean {
    return !this.content.has(name) && (this.lacking.has(name) || !this.given.has(uid));
  }

  problem(): Rejection | undefined {
    return this.unmet;
  }

  release(uid: string): void {
    this.given.delete(uid);
  }

  restore(records: ReadonlyMap<string, unknown>): void {
    for (const [uid, card] of records) this.given.set(uid, String(card));
  }
}
