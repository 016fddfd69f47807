import type { ContainerConfig, ContainerMount, IdMapping, LinuxResources } from "../../../adapters/runtime/port.ts";
import type { Container, Pod } from "../../../model/generated/types.ts";
import type { CrashState } from "../../plan/crash-backoff.ts";

/** A container that is about to be created. */
export interface ContainerCreation {
  readonly pod: Pod;
  readonly container: Container;
  /** 0 for the first instance. */
  readonly attempt: number;
  /** The addresses of the pod's sandbox; none on the host's network. */
  readonly sandboxIps: readonly string[];
  /** References of the images that are mounted as volumes, by volume. */
  readonly imageVolumes: ReadonlyMap<string, string>;
  /** The crash back-off so far. */
  readonly crash?: CrashState | undefined;
  /** Aborts when the creation is obsolete. */
  readonly interrupt: AbortSignal;
  /** Aborts only when the agent has waited long enough while stopping. */
  readonly finish: AbortSignal;
}

/** What one contributor adds to a container. */
export interface Contribution {
  readonly env?: ContainerConfig["envs"];
  readonly mounts?: readonly ContainerMount[];
  readonly devices?: ContainerConfig["devices"];
  /** Fully qualified names of CDI devices, `vendor.com/class=name`. */
  readonly cdiDevices?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly resources?: LinuxResources;
  /** The user namespace of the pod; every mount is mapped into it. */
  readonly users?: IdMapping | undefined;
}

/** What all contributors together made of a container. */
export type MergedContribution = Required<Omit<Contribution, "users">> & Pick<Contribution, "users">;

/**
 * Adds one input to containers: environment, volumes, devices, cpusets … Adding one means adding a file and a line in
 * `list.ts`; the merge rejects two contributors that disagree.
 */
export interface ContainerContributor {
  /** As it is shown in the error about a conflict. */
  readonly name: string;
  /** True if its variables replace those of contributors before it: what the pod's author wrote wins, as in Kubernetes. */
  readonly overridesEnv?: boolean;
  /** The same for its mounts: one at the path of an earlier one takes its place. */
  readonly overridesMounts?: boolean;
  /**
   * Called once for each instance of a container, in the order of the list; `before` is what those before it made.
   * Throws a `ConfigError` where the spec cannot be honoured.
   */
  contribute(creation: ContainerCreation, before: MergedContribution): Contribution | Promise<Contribution>;
}
