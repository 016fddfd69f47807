/** Memory of one kind that a container has to itself, or that may be given out. */
export interface AssignedMemory {
  /** `memory` or `hugepages-2Mi` …. */
  readonly type: string;
  readonly bytes: number;
  readonly nodes: readonly number[];
}

/** Exclusive CPUs and memory of containers, for the pod resources API. */
export interface AssignedCompute {
  cpus(uid: string, container: string): readonly number[];
  memory(uid: string, container: string): readonly AssignedMemory[];
  /** What may be given out as a whole, whether it is or not. */
  allocatableCpus(): readonly number[];
  allocatableMemory(): readonly AssignedMemory[];
}
