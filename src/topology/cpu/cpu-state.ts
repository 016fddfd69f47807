import { type CpuSet, NO_CPUS, unionOf } from "../../model/cpu-set.ts";

/** Which CPUs belong to whom: those of single containers, and the pool that all others share. */
export class CpuState {
  /** CPUs of everybody who has none for himself; empty without the static policy. */
  shared: CpuSet;
  private readonly pods = new Map<string, Map<string, CpuSet>>();

  constructor(shared: CpuSet = NO_CPUS, entries: Iterable<readonly [string, ReadonlyMap<string, CpuSet>]> = []) {
    this.shared = shared;
    for (const [uid, containers] of entries) this.pods.set(uid, new Map(containers));
  }

  /** UIDs of pods with CPUs of their own, and what their containers have. */
  get entries(): ReadonlyMap<string, ReadonlyMap<string, CpuSet>> {
    return this.pods;
  }

  /** The CPUs that the container has for itself. */
  exclusive(uid: string, container: string): CpuSet | undefined {
    return this.pods.get(uid)?.get(container);
  }

  ofPod(uid: string): ReadonlyMap<string, CpuSet> {
    return this.pods.get(uid) ?? new Map();
  }

  assign(uid: string, container: string, cpus: CpuSet): void {
    const containers = this.pods.get(uid) ?? new Map<string, CpuSet>();
    this.pods.set(uid, containers.set(container, cpus));
  }

  /** Takes everything of the pod; returns the CPUs that nobody has now. */
  remove(uid: string): CpuSet {
    const cpus = unionOf(...this.ofPod(uid).values());
    this.pods.delete(uid);
    return cpus;
  }

  /** All CPUs that somebody has for himself. */
  allExclusive(): CpuSet {
    return unionOf(...[...this.pods.values()].flatMap((containers) => [...containers.values()]));
  }
}
