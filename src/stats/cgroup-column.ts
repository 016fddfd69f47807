import type { CgroupRow } from "./cgroup-rows.ts";
import type { MetricFamily } from "./exposition.ts";

/** A family of metrics of cgroups. */
export interface Column extends MetricFamily {
  /** The time that its series carry: of the sample by default, of the scrape, or none. */
  readonly time?: "sample" | "scrape" | "none";
  /** Calls back with each value of a cgroup, and with further labels if it has any. */
  each(row: CgroupRow, add: (value: number, labels?: string) => void, now: number): void;
}
