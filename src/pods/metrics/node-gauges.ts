import type { LabelValues, Metrics } from "../../lib/metrics.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { isStaticPod } from "../../model/pod-facts.ts";
import type { DesiredPods } from "../desired.ts";
import type { WorkerPool } from "../worker/pool.ts";

/** Where the node gauges read their values, at each scrape and only then. */
export interface NodeGaugeSources {
  readonly nodeName: string;
  readonly desired: Pick<DesiredPods, "list" | "get">;
  readonly pool: Pick<WorkerPool, "uids" | "worker">;
  readonly observer: { list(): readonly ObservedPod[] };
  /** Time of the last relist; undefined before the first. */
  listedAt(): { readonly wall: number } | undefined;
}

type Values = Iterable<readonly [LabelValues, number]>;

/** The values of the `lifecycle` label, as in Kubernetes. */
const LIFECYCLES = { syncing: "sync", stopping: "terminating", stopped: "terminated", gone: "terminated" } as const;

/** Declares the gauges about the node and its pods, by Kubernetes' names. */
export function declareNodeGauges(metrics: Metrics, facts: NodeGaugeSources): void {
  const { desired, pool, observer } = facts;
  const one = (name: string, help: string, value: () => number): void =>
    metrics.gaugeFrom(name, help, { values: () => [[[], value()]] });
  metrics.gaugeFrom("kubelet_node_name", "The name of this node; always 1.", {
    labels: ["node"],
    values: () => [[[facts.nodeName], 1]],
  });
  one("kubelet_running_pods", "Number of pods with a running sandbox.", () => withSandbox(observer.list()));
  metrics.gaugeFrom("kubelet_running_containers", "Number of containers in the runtime by state.", {
    labels: ["container_state"],
    values: () => containerStates(observer.list()),
  });
  const listed = (): Values => tally(desired.list().map(({ pod }) => [isStaticPod(pod) ? "true" : ""]));
  metrics.gaugeFrom("kubelet_desired_pods", "Number of pods that the sources list.", {
    labels: ["static"],
    values: listed,
  });
  const workers = () =>
    pool
      .uids()
      .map((uid) => pool.worker(uid))
      .filter((worker) => worker !== undefined);
  metrics.gaugeFrom("kubelet_active_pods", "Number of pods that are not terminated.", {
    labels: ["static"],
    values: () =>
      tally(
        workers()
          .filter(({ life }) => life.phase === "syncing" || life.phase === "stopping")
          .map(({ pod }) => [isStaticPod(pod) ? "true" : ""]),
      ),
  });
  metrics.gaugeFrom("kubelet_working_pods", "Number of pods with a worker, by lifecycle.", {
    labels: ["lifecycle", "config", "static"],
    values: () =>
      tally(
        workers().map(({ life, pod, identity }) => {
          const config = desired.get(identity.uid) === undefined ? "orphan" : "desired";
          return [LIFECYCLES[life.phase], config, isStaticPod(pod) ? "true" : ""];
        }),
      ),
  });
  const ephemeral = (): number =>
    workers().reduce((sum, { pod }) => sum + (pod.spec.ephemeralContainers ?? []).length, 0);
  one("kubelet_managed_ephemeral_containers", "Number of ephemeral containers.", ephemeral);
  one("kubelet_pleg_last_seen_seconds", "Unix time of the last relist.", () =>
    Math.floor((facts.listedAt()?.wall ?? 0) / 1000),
  );
}

function withSandbox(pods: readonly ObservedPod[]): number {
  return pods.filter(({ sandboxes }) => sandboxes.some(({ state }) => state === "ready")).length;
}

function containerStates(pods: readonly ObservedPod[]): Values {
  return tally(pods.flatMap(({ containers }) => containers.map(({ state }) => [state])));
}

/** Counts each combination of label values. */
function tally(all: readonly LabelValues[]): Values {
  const counts = new Map<string, [LabelValues, number]>();
  for (const labels of all) {
    const key = labels.join("\0");
    const known = counts.get(key);
    if (known === undefined) counts.set(key, [labels, 1]);
    else known[1]++;
  }
  return counts.values();
}
