import { unreachable } from "../lib/errors.ts";
import type { CounterSeries, Metrics } from "../lib/metrics.ts";
import type { ProbeKind } from "../model/probe.ts";
import type { PodIdentity } from "../model/step.ts";
import type { ProbeChange, ProbeHooks, ProbeRun } from "./scheduler.ts";

/** The part of a pod's journal that probes write to. */
export interface ProbeJournal {
  note(step: "probe", detail: string, container: string): void;
  event(type: "Warning", reason: string, what: { message: string; container: string }): void;
}

export interface ReportDeps {
  journal: { of(pod: PodIdentity): ProbeJournal };
  metrics: Metrics;
  /** Called after the change was recorded in the journal. */
  changed(change: ProbeChange): void;
}

/** A series a probe and result: the pods of a node may have several thousand, and those of removed pods are removed. */
const MOST_SERIES = 20_000;
const NAMES: Readonly<Record<ProbeKind, string>> = { startup: "Startup", liveness: "Liveness", readiness: "Readiness" };

/** Records runs and changed results in the journal, in events and in the metrics of Kubernetes, and forwards changes. */
export function probeHooks({ journal, metrics, changed }: ReportDeps): ProbeHooks {
  const labels = ["probe_type", "result", "container", "pod", "namespace", "pod_uid"];
  const total = metrics.counter(
    "prober_probe_total",
    "Cumulative number of liveness, readiness and startup probes for a container by result.",
    { labels, most: MOST_SERIES },
  );
  const duration = metrics.histogram(
    "prober_probe_duration_seconds",
    "Duration in seconds of a probe that succeeded.",
    {
      labels: ["probe_type", "container", "pod", "namespace"],
      most: MOST_SERIES,
    },
  );
  /** The series of each pod by UID, removed with the pod. */
  const series = new Map<string, Map<string, { labels: readonly string[]; count: CounterSeries }>>();
  const timedAs = ({ pod, container, kind }: Pick<ProbeRun, "pod" | "container" | "kind">): readonly string[] => [
    ...[NAMES[kind], container, pod.name, pod.namespace],
  ];
  const seriesOf = ({ pod, container, kind, result }: ProbeRun): CounterSeries => {
    let own = series.get(pod.uid);
    if (own === undefined) series.set(pod.uid, (own = new Map()));
    const key = `${kind} ${result} ${container}`;
    let one = own.get(key);
    if (one === undefined) {
      const values = [NAMES[kind], resultWord(result), container, pod.name, pod.namespace, pod.uid];
      own.set(key, (one = { labels: values, count: total.of(values) }));
    }
    return one.count;
  };
  return {
    ran: (run) => {
      const { pod, container } = run;
      seriesOf(run).inc();
      // As in Kubernetes: the times of failed probes are those of their timeouts.
      if (resultWord(run.result) === "successful") duration.observe(run.tookMs / 1000, timedAs(run));
      const event = probeEvent(run);
      if (event !== undefined) journal.of(pod).event("Warning", event.reason, { message: event.message, container });
    },
    changed: (change) => {
      journal.of(change.pod).note("probe", changeWord(change), change.container);
      changed(change);
    },
    forgotten: ({ uid }) => {
      for (const { labels: of } of series.get(uid)?.values() ?? []) {
        total.remove(of);
        const [kind = "", , container = "", pod = "", namespace = ""] = of;
        duration.remove([kind, container, pod, namespace]);
      }
      series.delete(uid);
    },
  };
}

/** Returns the event for a run, worded as in Kubernetes; undefined for a success. */
export function probeEvent({
  kind,
  result,
  output,
}: Pick<ProbeRun, "kind" | "result" | "output">): { reason: string; message: string } | undefined {
  const name = NAMES[kind];
  switch (result) {
    case "success":
      return undefined;
    case "failure":
      return { reason: "Unhealthy", message: `${name} probe failed: ${output}` };
    case "warning":
      return { reason: "ProbeWarning", message: `${name} probe warning: ${output}` };
    case "error":
      return { reason: "Unhealthy", message: `${name} probe errored and resulted in unknown state: ${output}` };
    default:
      return unreachable(result);
  }
}

function resultWord(result: ProbeRun["result"]): string {
  if (result === "failure") return "failed";
  return result === "error" ? "unknown" : "successful";
}

function changeWord({ kind, result }: ProbeChange): string {
  const good = result === "success";
  switch (kind) {
    case "startup":
      return good ? "started" : "startup probe failed";
    case "liveness":
      return good ? "alive" : "liveness probe failed";
    case "readiness":
      return good ? "ready" : "not ready";
    default:
      return unreachable(kind);
  }
}
