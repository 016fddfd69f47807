import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { Readmission } from "../../model/topology.ts";
import type { PodFiles } from "../pod-files.ts";
import type { Rejection } from "./facts.ts";

/**
 * Hands out one kind of node resource (CPUs, devices, claims) to pods. What containers get of it is told by a
 * `ContainerContributor`, mostly of the same class.
 */
export interface Allocator {
  /** The key of its records on disk: must not change between versions of the agent. */
  readonly name: string;
  /**
   * Allocates what the pod needs, once, at admission; undefined if it needs nothing. It is reserved when the call returns:
   * other pods are decided while this one waits for a disk or a plugin. The allocation must survive JSON: `restore` gets
   * it after a restart of the agent. An error rejects the pod with UnexpectedAdmissionError.
   */
  allocate(pod: Pod, options: Abortable): Promise<AllocatorAnswer | undefined>;
  /** Why it could not allocate what the pod needs. Allocates nothing, and releases what the pod has. */
  problem?(pod: Pod): Rejection | undefined;
  /**
   * Whether a pod of before a restart of the agent, of which nothing runs, may start with what it was allocated then.
   * Allocates nothing.
   */
  readmit?(pod: Pod): ReadmissionAnswer;
  /**
   * Allocates to a pod that an earlier run of the agent admitted what it has no record of. Resolves with why it cannot be
   * had: the pod runs on without it. Rejects if that could not be persisted: then it may be called again.
   */
  adopt?(pod: Pod, options: Abortable): Promise<Rejection | undefined>;
  /** True if `adopt` would allocate something to the pod, or try to. */
  isLackedBy?(pod: Pod): boolean;
  /** Releases what the pod has. Safe to repeat, and for a pod that has nothing. */
  release(uid: string): void;
  /**
   * Takes over the allocations of an earlier run of the agent, by the pods' UIDs. Called before `allocate`, and again
   * with records that could not be read before.
   */
  restore(records: ReadonlyMap<string, unknown>): void;
  /** UIDs of pods that have something, for an allocator that keeps records of its own. */
  held?(): Iterable<string>;
}

export type AllocatorAnswer = { readonly allocation: unknown } | { readonly rejection: Rejection };

/** Undefined if the pod may start. */
export type ReadmissionAnswer = Readmission | { readonly rejection: Rejection };

interface AllocationDeps {
  readonly allocators: readonly Allocator[];
  readonly files: Pick<PodFiles, "list" | "readTail" | "replaceFile" | "removeFile">;
  readonly log: Pick<Logger, "warn">;
}

/** What an allocator has reserved, and its answer. */
interface Reserved {
  readonly name: string;
  readonly answer: Promise<AllocatorAnswer | undefined>;
}

/** By allocator's name. */
type Records = Readonly<Record<string, unknown>>;

/** No record of a pod's allocations is longer. */
const MOST_RECORD_BYTES = 1024 * 1024;

/**
 * Asks the allocators in their order and keeps what they gave: in `ROOT/pods/UID/allocations.json`, written before the
 * pod is admitted, removed when it has stopped, restored when the agent starts.
 */
export class PodAllocations {
  private readonly records = new Map<string, Records>();
  /** Why the records of these pods cannot be read: what they have is not known, so nothing new is allocated. */
  private readonly unreadable = new Map<string, string>();
  private readonly releases = new Map<string, Promise<void>>();
  private restored: Promise<void> | undefined;

  constructor(
    private readonly deps: AllocationDeps,
    private readonly options: { readonly rootDir: string },
  ) {}

  /** True if there is nothing to allocate on this node. */
  get isEmpty(): boolean {
    return this.deps.allocators.length === 0;
  }

  /** Hands the records of an earlier run to the allocators, once; after a failure the next call tries again. */
  restore(): Promise<void> {
    this.restored ??= this.load().catch((error: unknown) => {
      this.restored = undefined;
      throw error;
    });
    return this.restored;
  }

  /**
   * Resolves when everything is reserved for the pod. `outcome` is why it is rejected, then nothing is left allocated;
   * undefined if what it has is persisted. After an abort the caller calls `release`.
   */
  async begin(pod: Pod, options: Abortable): Promise<{ readonly outcome: Promise<Rejection | undefined> }> {
    const { uid = "" } = pod.metadata;
    await this.releases.get(uid);
    let reserved: readonly Reserved[] = [];
    try {
      await this.readAgain();
      const missing = this.deps.allocators.filter(({ name }) => !Object.hasOwn(this.records.get(uid) ?? {}, name));
      reserved = missing.map((allocator) => ({ name: allocator.name, answer: allocator.allocate(pod, options) }));
    } catch (error) {
      reserved = [{ name: "", answer: Promise.reject(error as Error) }]; // reason: whatever it is, it is reported
    }
    return { outcome: this.complete(uid, reserved, options) };
  }

  /** Why an allocator would reject the pod, for a pod that is rejected anyway. */
  problem(pod: Pod): Rejection | undefined {
    for (const allocator of this.deps.allocators) {
      const found = allocator.problem?.(pod);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Whether a pod of which nothing ran when the agent started may start with what it was allocated before. */
  readmit(pod: Pod): ReadmissionAnswer {
    const answers = this.deps.allocators.map((allocator) => allocator.readmit?.(pod));
    return answers.find((answer) => answer && "rejection" in answer) ?? answers.find((answer) => answer !== undefined);
  }

  /** Allocates to a pod of an earlier run what it lacks. Resolves with why it cannot be had; may be repeated if it rejects. */
  async adopt(pod: Pod, options: Abortable): Promise<Rejection | undefined> {
    for (const allocator of this.deps.allocators) {
      const rejection = await allocator.adopt?.(pod, options);
      if (rejection !== undefined) return rejection;
    }
    return undefined;
  }

  /** True if a pod of an earlier run lacks something. */
  isLackedBy(pod: Pod): boolean {
    return this.deps.allocators.some((allocator) => allocator.isLackedBy?.(pod) === true);
  }

  /** Releases what the pod has, also on disk. Safe to repeat; never rejects. */
  release(uid: string): Promise<void> {
    if (this.isEmpty) return Promise.resolve();
    const running = this.releases.get(uid);
    if (running !== undefined) return running;
    for (const allocator of this.deps.allocators) allocator.release(uid);
    const had = [this.records.delete(uid), this.unreadable.delete(uid)];
    if (!had.includes(true)) return Promise.resolve();
    const release = this.remove(uid).finally(() => this.releases.delete(uid));
    this.releases.set(uid, release);
    return release;
  }

  /** Releases the allocations of orphaned pods: those that were removed while no agent ran. */
  async releaseOthers(isKnown: (uid: string) => boolean): Promise<void> {
    await this.restore();
    const own = this.deps.allocators.flatMap((allocator) => [...(allocator.held?.() ?? [])]);
    const recorded = new Set([...this.records.keys(), ...this.unreadable.keys(), ...own]);
    await Promise.all([...recorded].filter((uid) => !isKnown(uid)).map((uid) => this.release(uid)));
  }

  private async complete(
    uid: string,
    reserved: readonly Reserved[],
    options: Abortable,
  ): Promise<Rejection | undefined> {
    // None is left alone with what it reserved: it might allocate it after the release.
    const answers = await Promise.allSettled(reserved.map(({ answer }) => answer));
    try {
      const before = this.records.get(uid);
      const given: Record<string, unknown> = { ...before };
      for (const [at, settled] of answers.entries()) {
        if (settled.status === "rejected") throw settled.reason;
        if (settled.value === undefined) continue;
        if ("rejection" in settled.value) return await this.reject(uid, settled.value.rejection);
        given[reserved[at]?.name ?? ""] = settled.value.allocation;
      }
      options.signal.throwIfAborted();
      if (Object.keys(given).length > Object.keys(before ?? {}).length) await this.persist(uid, given);
      return undefined;
    } catch (error) {
      options.signal.throwIfAborted();
      const message = `Allocate failed due to ${messageOf(error)}, which is unexpected`;
      return await this.reject(uid, { reason: "UnexpectedAdmissionError", message });
    }
  }

  private async reject(uid: string, rejection: Rejection): Promise<Rejection> {
    await this.release(uid);
    return rejection;
  }

  private async persist(uid: string, records: Records): Promise<void> {
    await this.deps.files.replaceFile(this.fileOf(uid), `${JSON.stringify({ version: 1, allocations: records })}\n`);
    this.records.set(uid, records);
  }

  private async remove(uid: string): Promise<void> {
    try {
      await this.deps.files.removeFile(this.fileOf(uid));
    } catch (error) {
      this.deps.log.warn("Failed to remove the record of a pod's allocations", {
        podUID: uid,
        error: messageOf(error),
      });
    }
  }

  private async load(): Promise<void> {
    for (const uid of await this.deps.files.list(`${this.options.rootDir}/pods`)) await this.read(uid);
    this.handOver(this.records);
  }

  /** Reads what could not be read before; throws while something still cannot. */
  private async readAgain(): Promise<void> {
    for (const uid of [...this.unreadable.keys()]) {
      await this.read(uid);
      const records = this.records.get(uid);
      if (records !== undefined && !this.unreadable.has(uid)) this.handOver(new Map([[uid, records]]));
    }
    for (const [uid, why] of this.unreadable) {
      throw new Error(`record of the allocations of pod ${uid} is unreadable: ${why}`);
    }
  }

  private handOver(records: ReadonlyMap<string, Records>): void {
    for (const allocator of this.deps.allocators) {
      const own = [...records].filter(([, given]) => Object.hasOwn(given, allocator.name));
      allocator.restore(new Map(own.map(([uid, given]) => [uid, given[allocator.name]])));
    }
  }

  private async read(uid: string): Promise<void> {
    const before = this.unreadable.get(uid);
    try {
      const text = await this.deps.files.readTail(this.fileOf(uid), MOST_RECORD_BYTES);
      // Released meanwhile.
      if (before !== undefined && !this.unreadable.has(uid)) return;
      if (text !== "") this.records.set(uid, recordsIn(text));
      this.unreadable.delete(uid);
    } catch (error) {
      const why = messageOf(error);
      if (before !== undefined && !this.unreadable.has(uid)) return;
      this.unreadable.set(uid, why);
      if (why === before) return;
      this.deps.log.warn("Failed to read the record of a pod's allocations", { podUID: uid, error: why });
    }
  }

  private fileOf(uid: string): string {
    return `${this.options.rootDir}/pods/${uid}/allocations.json`;
  }
}

function recordsIn(text: string): Records {
  const parsed: unknown = JSON.parse(text);
  const found: unknown = typeof parsed === "object" && parsed !== null ? Reflect.get(parsed, "allocations") : undefined;
  if (typeof found !== "object" || found === null) throw new Error("it has no allocations");
  return found as Records; // reason: the agent wrote it
}
