/** What a probe decides about: whether a container has started, is alive, is ready. */
export type ProbeKind = "startup" | "liveness" | "readiness";

/** What a probe last decided; `unknown` before it has decided anything. */
export type ProbeResult = "success" | "failure" | "unknown";

/** The results of one container's probes; a field is undefined when the container has no such probe. */
export interface ContainerProbes {
  /** The container instance: results of an earlier one do not apply to its successor. */
  readonly containerId: string;
  readonly started: boolean | undefined;
  readonly ready: boolean | undefined;
  readonly liveness: ProbeResult | undefined;
  readonly startup: ProbeResult | undefined;
}

/** Results of a pod's probes by container name. Containers without probes are not in it. */
export type PodProbeResults = ReadonlyMap<string, ContainerProbes>;

/** Of a pod that has no probes. */
export const NO_PROBE_RESULTS: PodProbeResults = new Map();

/** A run of a probe. `error`: it could not be executed. */
export interface ProbeRunReport {
  readonly outcome: "success" | "warning" | "failure" | "error";
  /** Its end, in wall-clock milliseconds. */
  readonly at: number;
  readonly tookMs: number;
  /** What the container or the connection answered; cut if it is long. */
  readonly message: string;
}

/** A probe of a container as it is now. */
export interface ProbeReport {
  readonly container: string;
  readonly kind: ProbeKind;
  readonly result: ProbeResult;
  /** Absent before the first run. */
  readonly last?: ProbeRunReport;
  /** Consecutive runs with the same outcome that count. */
  readonly streak?: { readonly of: "success" | "failure"; readonly count: number };
  /** The next run, in wall-clock milliseconds; absent if none is planned. */
  readonly nextAt?: number;
}
