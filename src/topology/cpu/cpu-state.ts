import { type CpuSet, NO_CPUS, unionOf } from "../../model/cpu-set.ts";

/** CPUs of single containers by their pod's UID and their name, and of whole pods by UID. */
interface Assignments {
  readonly entries?: Iterable<readonly [string, ReadonlyMap<string, CpuSet>]>;
  readonly pods?: Iterable<readonly [string, CpuSet]>;
}

/**
 * Which CPUs belong to whom: those of single containers, those of whole pods, and the pool that all others share. What a
 * container of a whole pod has is a part of what the pod has, and may be shared with other containers of it.
 */
export class CpuState {
  /** CPUs of everybody who has none for himself; empty without the static policy. */
  shared: CpuSet;
  private readonly containers = new Map<string, Map<string, CpuSet>>();
  private readonly pods: Map<string, CpuSet>;

  constructor(shared: CpuSet = NO_CPUS, { entries = [], pods = [] }: Assignments = {}) {
    this.shared = shared;
    for (const [uid, containers] of entries) this.containers.set(uid, new Map(containers));
    this.pods = new Map(pods);
  }

  /** UIDs of pods with CPUs of their own, and what their containers have. */
  get entries(): ReadonlyMap<string, ReadonlyMap<string, CpuSet>> {
    return this.containers;
  }

  /** What pods have as a whole. */
  get podEntries(): ReadonlyMap<string, CpuSet> {
    return this.pods;
  }

  /** The CPUs that the container has for itself, or shares within its pod. */
  exclusive(uid: string, container: string): CpuSet | undefined {
    return this.containers.get(uid)?.get(container);
  }

  ofPod(uid: string): ReadonlyMap<string, CpuSet> {
    return this.containers.get(uid) ?? new Map();
  }

  assign(uid: string, container: string, cpus: CpuSet): void {
    const containers = this.containers.get(uid) ?? new Map<string, CpuSet>();
    this.containers.set(uid, containers.set(container, cpus));
  }

  assignPod(uid: string, cpus: CpuSet): void {
    this.pods.set(uid, cpus);
  }

  /** Takes everything of the pod; returns the CPUs that nobody has now. */
  remove(uid: string): CpuSet {
    const cpus = unionOf(...this.ofPod(uid).values(), this.pods.get(uid) ?? NO_CPUS);
    this.containers.delete(uid);
    this.pods.delete(uid);
    return cpus;
  }

  /** UIDs of pods that have CPUs. */
  holders(): Iterable<string> {
    return new Set([...this.containers.keys(), ...this.pods.keys()]);
  }

  /** All CPUs that somebody has for himself. */
  allExclusive(): CpuSet {
    const all = new Set<number>();
    const add = (cpus: CpuSet): void => {
      for (const cpu of cpus) all.add(cpu);
    };
    // No spread: there may be more containers than a call has arguments.
    for (const containers of this.containers.values()) for (const cpus of containers.values()) add(cpus);
    for (const cpus of this.pods.values()) add(cpus);
    return all;
  }
}
