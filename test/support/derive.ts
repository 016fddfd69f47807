import type { Pod, PodStatus } from "../../src/model/generated/types.ts";
import type { ObservedPod } from "../../src/model/observed.ts";
import { derivePodStatus, type StatusFacts } from "../../src/pods/status/derive.ts";

/** The status of a pod on a machine of which nothing else is known. */
export function derive(of: Pod, what: ObservedPod, more: Partial<StatusFacts> = {}): PodStatus {
  return derivePodStatus({
    pod: of,
    observed: what,
    previous: undefined,
    waiting: new Map(),
    runtimeName: "containerd",
    hostIps: ["192.0.2.1"],
    now: Date.UTC(2026, 0, 1),
    terminating: false,
    finished: false,
    ...more,
  });
}
