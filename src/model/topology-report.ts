import type { CpuPlace, NumaNode } from "./machine-topology.ts";

/** Who has a CPU: containers without CPUs of their own share the pool. */
export type CpuUse = "shared" | "reserved" | "exclusive" | "any";

/** A CPU and who has it. */
export interface CpuReport extends CpuPlace {
  readonly use: CpuUse;
}

/** Memory of one kind on a NUMA node, in bytes. */
export interface MemoryReport {
  readonly type: string;
  readonly total: number;
  /** Missing without the policy Static. */
  readonly allocatable?: number;
  readonly free?: number;
}

/** What a container has for itself. */
export interface Holding {
  readonly uid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly cpus: readonly number[];
  /** True if other containers of the pod have these CPUs as well: they share what the pod has as a whole. */
  readonly isShared?: boolean;
  readonly memory: readonly { readonly type: string; readonly bytes: number; readonly nodes: readonly number[] }[];
}

/** A device of a plug-in. */
export interface DeviceReport {
  readonly resource: string;
  readonly id: string;
  /** Empty if the plug-in does not tell. */
  readonly nodes: readonly number[];
  readonly isHealthy: boolean;
  readonly holder?: Pick<Holding, "uid" | "namespace" | "pod" | "container"> | undefined;
}

/** The machine, and who has what of it. */
export interface TopologyReport {
  readonly policies: {
    readonly cpu: string;
    readonly memory: string;
    readonly topology: string;
    readonly scope: string;
  };
  readonly cpus: readonly CpuReport[];
  readonly offline: readonly number[];
  readonly nodes: readonly (Pick<NumaNode, "id" | "distances"> & { readonly memory: readonly MemoryReport[] })[];
  readonly holdings: readonly Holding[];
  readonly devices: readonly DeviceReport[];
}
