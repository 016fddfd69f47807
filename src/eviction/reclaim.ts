import type { Abortable } from "../lib/abort.ts";
import { type Layout, SIGNALS, type Signal } from "./signals.ts";

/** Frees what the node itself keeps, before any pod is evicted; implemented by garbage collection. */
export interface NodeReclaim {
  deleteAllUnusedContainers(options: Abortable): Promise<unknown>;
  deleteUnusedImages(options: Abortable): Promise<unknown>;
}

/** What of the node's own may be reclaimed for a signal, in this order. Pure. */
export function reclaimFor(signal: Signal, layout: Layout): readonly (keyof NodeReclaim)[] {
  if (SIGNALS[signal].condition !== "DiskPressure") return [];
  if (layout === "dedicated" && signal.startsWith("nodefs.")) return [];
  if (layout === "split") return [signal.startsWith("imagefs.") ? "deleteUnusedImages" : "deleteAllUnusedContainers"];
  return ["deleteAllUnusedContainers", "deleteUnusedImages"];
}
