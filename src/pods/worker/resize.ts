import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Pod, ResourceRequirements } from "../../model/generated/types.ts";
import { RESOURCES_ANNOTATION } from "../../model/labels.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import { tryParseQuantity } from "../../model/quantity.ts";
import { type Allocation, allocationOf, changedResources, POD_LEVEL, withAllocation } from "../admission/allocation.ts";
import type { ResizeVerdict } from "../admission/facts.ts";

/** How long until a deferred resize is tried again, in milliseconds (3 min, as in Kubernetes). */
export const RESIZE_RETRY_MS = 180_000;

export type { ResizeVerdict } from "../admission/facts.ts";

export interface ResizeDeps {
  readonly log: Pick<Logger, "warn">;
  /** Loads the record of the pod; empty if there is none. */
  load(): Promise<string>;
  /** Replaces the record atomically. Never called again before it has settled. */
  save(text: string): Promise<void>;
  verdict(pod: Pod): ResizeVerdict;
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

/**
 * The resources that a pod is allocated and those that its containers actually have: the first change when the node has
 * room, the second when the runtime has applied them. Both are persisted, so that nothing is done twice.
 */
export class PodResize {
  private allocation: Allocation | undefined;
  /** Actual resources by container id, or `POD_LEVEL`, if they were changed after creation. */
  private readonly actual = new Map<string, ResourceRequirements>();
  /** Containers, or `POD_LEVEL`, whose resize began and was not reported as applied: what they have is unknown. */
  private readonly uncertain = new Set<string>();
  private waits: ResizeVerdict;
  /** The resize that waits and of which an event was recorded. */
  private recorded: string | undefined;
  private failure: string | undefined;
  private isAdopted = false;
  /** False while the allocation has only what an earlier agent left with its containers. */
  private isWhole = false;
  private isResizing = false;
  /** The newest record, until its turn to be saved comes. */
  private unsaved: string | undefined;
  private saving: Promise<void> | undefined;

  /** `admitted`: what the pod asked for when it was admitted; undefined for a pod of an earlier agent. */
  constructor(
    private readonly deps: ResizeDeps,
    private readonly admitted?: Allocation,
  ) {}

  /** Why a resize waits for room, if one does. */
  get pending(): ResizeVerdict {
    return this.waits;
  }

  /** True while containers do not have what they were allocated, as far as `follow` has seen. */
  get isInProgress(): boolean {
    return this.isResizing;
  }

  /** The error of the last try. */
  get error(): string | undefined {
    return this.failure;
  }

  /** Restores what an earlier agent allocated to the pod. Does nothing when called again. */
  async adopt(observed: ObservedPod): Promise<void> {
    if (this.isAdopted) return;
    this.isAdopted = true;
    const recorded = observed.containers.toReversed().flatMap(({ name, annotations }) => {
      const resources = parseRequirements(annotations[RESOURCES_ANNOTATION]);
      return resources === undefined ? [] : [[name, resources] as const];
    });
    const persisted = this.parse(await this.deps.load().catch(() => ""));
    const allocation = new Map([...recorded, ...Object.entries(persisted.allocated)]);
    if (allocation.size > 0) this.allocation = allocation;
    for (const [id, resources] of Object.entries(persisted.actual)) this.actual.set(id, resources);
    for (const id of persisted.uncertain) this.uncertain.add(id);
  }

  /** Allocates what the pod asks for now, if there is room; returns the pod with what it is allocated. */
  settle(desired: Pod): Pod {
    const current = this.view(desired);
    if (!this.actual.has(POD_LEVEL)) this.actual.set(POD_LEVEL, current.spec.resources ?? {});
    if (!this.isWhole) this.complete(current);
    if (current === desired) {
      this.waits = undefined;
      this.recorded = undefined;
      return desired;
    }
    this.waits = this.deps.verdict(desired);
    if (this.waits !== undefined) {
      this.recordWait(this.waits, desired);
      return current;
    }
    this.allocation = allocationOf(desired);
    this.recorded = undefined;
    void this.store();
    return desired;
  }

  /** Returns the pod with what it is allocated. */
  view(desired: Pod): Pod {
    const allocation = this.allocation ?? this.admitted;
    return allocation === undefined ? desired : withAllocation(desired, allocation);
  }

  /** Returns what a container has; undefined if unknown, as for one that another agent created. */
  actualOf({ id, annotations }: Pick<ObservedContainer, "id" | "annotations">): ResourceRequirements | undefined {
    return this.actual.get(id) ?? parseRequirements(annotations[RESOURCES_ANNOTATION]);
  }

  /** What the pod as a whole has; undefined if unknown. */
  get actualPod(): ResourceRequirements | undefined {
    return this.actual.get(POD_LEVEL);
  }

  /** True if a resize of `id` began and its result is unknown: the call failed, or the agent was killed meanwhile. */
  isUncertain(id: string): boolean {
    return this.uncertain.has(id);
  }

  /** Records that the runtime is about to be asked for a resize; resolves when that is persisted. */
  begin(id: string): Promise<void> {
    this.uncertain.add(id);
    return this.store();
  }

  /** The runtime has applied a resize; `id` is a container's, or `POD_LEVEL`. */
  done(id: string, resources: ResourceRequirements): void {
    this.failure = undefined;
    this.actual.set(id, resources);
    this.uncertain.delete(id);
    void this.store();
  }

  /** A resize of the pod failed; an error that is new is recorded as an event. */
  failed(pod: Pod, message: string): void {
    if (message !== this.failure)
      this.deps.event("Warning", "ResizeError", `Pod resize error: ${summaryOf(pod, message)}`);
    this.failure = message;
  }

  /** Records the beginning and the end of a resize. */
  follow(pod: Pod, observed: ObservedPod): void {
    const isNow = this.differs(pod, observed);
    if (isNow !== this.isResizing) {
      const what = summaryOf(pod);
      if (isNow) this.deps.event("Normal", "ResizeStarted", `Pod resize started: ${what}`);
      else this.deps.event("Normal", "ResizeCompleted", `Pod resize completed: ${what}`);
    }
    this.isResizing = isNow;
    if (!isNow) this.failure = undefined;
  }

  /** What no container has with it, as the resources of the pod as a whole, is what the pod asks for at first. */
  private complete(pod: Pod): void {
    const isRecorded = pod.spec.resources === undefined || this.allocation?.has(POD_LEVEL) === true;
    this.isWhole = true;
    this.allocation = allocationOf(pod);
    if (!isRecorded) void this.store();
  }

  /** Once for each reason and what is asked for: the numbers in the message change with every other pod. */
  private recordWait({ reason, message }: NonNullable<ResizeVerdict>, desired: Pod): void {
    const asked = `${reason} ${summaryOf(desired)}`;
    if (asked === this.recorded) return;
    this.recorded = asked;
    // The next agent has to know what was asked for and not granted.
    void this.store();
    this.deps.event("Warning", `Resize${reason}`, `Pod resize ${reason}: ${summaryOf(desired, message)}`);
  }

  private differs(pod: Pod, { containers }: ObservedPod): boolean {
    const isAlive = containers.some(({ state }) => state === "running");
    const { actualPod } = this;
    if (isAlive && this.uncertain.has(POD_LEVEL)) return true;
    if (isAlive && actualPod !== undefined && changedResources(actualPod, pod.spec.resources).length > 0) return true;
    return [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].some(({ name, resources }) => {
      const newest = containers.find((container) => container.name === name);
      if (newest?.state !== "running") return false;
      const actual = this.actualOf(newest);
      if (this.uncertain.has(newest.id)) return true;
      return actual !== undefined && changedResources(actual, resources).length > 0;
    });
  }

  /** Resolves when this record, or a newer one, is saved or has failed to be. */
  private store(): Promise<void> {
    const allocated = Object.fromEntries(this.allocation ?? []);
    const actual = Object.fromEntries(this.actual);
    this.unsaved = `${JSON.stringify({ version: 1, allocated, actual, uncertain: [...this.uncertain] })}\n`;
    this.saving ??= this.saveAll();
    return this.saving;
  }

  /** Saves one record at a time, so that the newest is the last; those between are left out. Never rejects. */
  private async saveAll(): Promise<void> {
    while (this.unsaved !== undefined) {
      const text = this.unsaved;
      this.unsaved = undefined;
      try {
        await this.deps.save(text);
      } catch (error) {
        this.deps.log.warn("Failed to persist allocated resources of pod", { error: messageOf(error) });
      }
    }
    this.saving = undefined;
  }

  private parse(text: string): { allocated: Requirements; actual: Requirements; uncertain: readonly string[] } {
    try {
      const parsed: unknown = text === "" ? {} : JSON.parse(text);
      const uncertain = (parsed as { uncertain?: unknown }).uncertain; // reason: the agent wrote it
      return {
        allocated: requirementsIn(parsed, "allocated"),
        actual: requirementsIn(parsed, "actual"),
        uncertain: Array.isArray(uncertain) ? uncertain.filter((id) => typeof id === "string") : [],
      };
    } catch (error) {
      this.deps.log.warn("Failed to load allocated resources of pod", { error: messageOf(error) });
      return { allocated: {}, actual: {}, uncertain: [] };
    }
  }
}

type Requirements = Readonly<Record<string, ResourceRequirements>>;

/** Throws for what the agent cannot have written: a quantity that cannot be parsed would fail each admission on the node. */
function requirementsIn(value: unknown, field: string): Requirements {
  const found: unknown = typeof value === "object" && value !== null ? Reflect.get(value, field) : undefined;
  if (typeof found !== "object" || found === null) return {};
  for (const [name, resources] of Object.entries(found)) {
    if (!isRequirements(resources)) throw new Error(`field ${field} has no resources for ${JSON.stringify(name)}`);
  }
  return found as Requirements; // reason: checked
}

function parseRequirements(text: string | undefined): ResourceRequirements | undefined {
  if (text === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return isRequirements(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isRequirements(value: unknown): value is ResourceRequirements {
  if (typeof value !== "object" || value === null) return false;
  return ["requests", "limits"].every((side) => {
    const amounts: unknown = Reflect.get(value, side) ?? {};
    return typeof amounts === "object" && Object.values(amounts ?? {}).every(isQuantity);
  });
}

function isQuantity(value: unknown): boolean {
  return typeof value === "string" && tryParseQuantity(value) !== undefined;
}

/** The resources of the pod as the events of Kubernetes have them, and those of the pod as a whole. */
function summaryOf({ spec, metadata }: Pod, error?: string): string {
  const { initContainers = [], containers, resources } = spec;
  const of = (list: typeof containers) => list.map((one) => ({ name: one.name, resources: ordered(one.resources) }));
  return JSON.stringify({
    ...(initContainers.length > 0 && { initContainers: of(initContainers) }),
    containers: of(containers),
    ...(resources && { resources: ordered(resources) }),
    generation: metadata.generation ?? 0,
    ...(error !== undefined && { error }),
  });
}

/** In the order in which Go writes them. */
function ordered({ limits, requests, claims }: ResourceRequirements = {}): ResourceRequirements {
  const sorted = (list: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(list).sort(([a], [b]) => (a < b ? -1 : 1)));
  return {
    ...(limits && { limits: sorted(limits) }),
    ...(requests && { requests: sorted(requests) }),
    ...(claims && { claims }),
  };
}
