import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import { VolumePendingError } from "./volume-error.ts";

/** What is measured of volumes, by the names of Kubernetes. */
export type OperationName =
  | "volume_mount"
  | "volume_unmount"
  | "unmount_device"
  | "map_volume"
  | "unmap_volume"
  | "unmap_device"
  | "volume_fs_resize"
  | "volume_apply_access_control"
  | "verify_controller_attached_volume";

/** An operation on a volume. */
export interface Operation {
  readonly plugin: string;
  readonly operation: OperationName;
  /** On a volume of an in-tree kind that a CSI driver has taken over. */
  readonly isMigrated?: boolean;
}

/** Upper bounds in seconds, as in Kubernetes. */
const BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Volumes of one plugin in one of the two states. */
export interface VolumeCount {
  readonly plugin: string;
  readonly state: "actual_state_of_world" | "desired_state_of_world";
}

/** Measures operations on volumes; without metrics it only runs them. */
export class OperationMeter {
  private readonly observe: (seconds: number, labels: readonly string[]) => void;
  private readonly observeWhole: (seconds: number, labels: readonly string[]) => void;
  private readonly cleaned: { all(): void; failed(): void };

  constructor(
    private readonly clock: Clock,
    metrics?: Metrics,
  ) {
    const whole = metrics?.histogram(
      "volume_operation_total_seconds",
      "Storage operation end to end duration in seconds",
      { labels: ["plugin_name", "operation_name"], buckets: BUCKETS },
    );
    this.observeWhole = (value, of) => whole?.observe(value, of);
    const all = metrics?.counter(
      "force_cleaned_failed_volume_operations_total",
      "The number of volumes that were force cleaned after their reconstruction failed during kubelet startup. This includes both successful and failed cleanups.",
    );
    const failed = metrics?.counter(
      "force_cleaned_failed_volume_operation_errors_total",
      "The number of volumes that failed force cleanup after their reconstruction failed during kubelet startup.",
    );
    this.cleaned = { all: () => all?.inc(), failed: () => failed?.inc() };
    const labels = ["volume_plugin", "operation_name", "status", "migrated"];
    const options = { labels, buckets: BUCKETS };
    const seconds = metrics?.histogram("storage_operation_duration_seconds", "Storage operation duration", options);
    this.observe = (value, of) => seconds?.observe(value, of);
  }

  /** Counts the clean-up of a volume whose metadata are lost. */
  async forceClean(work: () => Promise<void>): Promise<void> {
    this.cleaned.all();
    try {
      await work();
    } catch (error) {
      this.cleaned.failed();
      throw error;
    }
  }

  /** Records how long a volume took from the first attempt until it was there, with all waits. `since` is monotonic. */
  mounted(plugin: string, since: number): void {
    this.observeWhole((this.clock.now().mono - since) / 1000, [plugin, "overall_volume_mount"]);
  }

  async measure<T>({ plugin, operation, isMigrated = false }: Operation, work: () => Promise<T>): Promise<T> {
    const began = this.clock.now().mono;
    const record = (status: string, of: OperationName = operation): void =>
      this.observe((this.clock.now().mono - began) / 1000, [plugin, of, status, String(isMigrated)]);
    try {
      const result = await work();
      record("success");
      return result;
    } catch (error) {
      // A volume that waits for its attachment has not failed to be mounted.
      record("fail-unknown", error instanceof VolumePendingError ? "verify_controller_attached_volume" : operation);
      throw error;
    }
  }
}

/** Declares the gauges of volumes and of the clean-up of orphaned pods. */
export function volumeGauges(
  metrics: Metrics | undefined,
  counts: () => Iterable<VolumeCount>,
): { orphans(total: number, failed: number): void } {
  metrics?.gaugeFrom("volume_manager_total_volumes", "Number of volumes in Volume Manager", {
    labels: ["plugin_name", "state"],
    values: () => tally(counts()),
  });
  const cleaned = metrics?.gauge(
    "kubelet_orphan_pod_cleaned_volumes",
    "The total number of orphaned Pods whose volumes were cleaned in the last periodic sweep.",
  );
  const errors = metrics?.gauge(
    "kubelet_orphan_pod_cleaned_volumes_errors",
    "The number of orphaned Pods whose volumes failed to be cleaned in the last periodic sweep.",
  );
  return {
    orphans(total, failed) {
      cleaned?.set(total);
      errors?.set(failed);
    },
  };
}

function tally(counts: Iterable<VolumeCount>): Iterable<readonly [readonly string[], number]> {
  const found = new Map<string, number>();
  for (const { plugin, state } of counts) found.set(`${plugin} ${state}`, (found.get(`${plugin} ${state}`) ?? 0) + 1);
  return [...found].map(([key, count]) => [key.split(" "), count] as const);
}
