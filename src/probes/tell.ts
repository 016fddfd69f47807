import { unreachable } from "../lib/errors.ts";
import type { CounterSeries, Metrics } from "../lib/metrics.ts";
import type { ProbeKind } from "../model/probe.ts";
import type { PodIdentity } from "../model/step.ts";
import type { ProbeChange, ProbeHooks, ProbeRun } from "./scheduler.ts";

/** A pod's journal, as far as probes write into it. */
export interface ProbeJournal {
  note(step: "probe", detail: string, container: string): void;
  event(type: "Warning", reason: string, what: { message: string; container: string }): void;
}

export interface TellDeps {
  journal: { of(pod: PodIdentity): ProbeJournal };
  metrics: Metrics;
  /** After the journal has it. */
  changed(change: ProbeChange): void;
}

const NAMES: Readonly<Record<ProbeKind, string>> = { startup: "Startup", liveness: "Liveness", readiness: "Readiness" };

/** Writes what the probes find into the journal, the events and the metrics of Kubernetes' names, and passes changes on. */
export function probeHooks({ journal, metrics, changed }: TellDeps): ProbeHooks {
  const labels = ["probe_type", "result", "container", "pod", "namespace", "pod_uid"];
  const total = metrics.counter("prober_probe_total", "Runs of probes by container and result.", labels);
  const duration = metrics.histogram("prober_probe_duration_seconds", "How long runs of probes took.", ["probe_type"]);
  /** The series of each pod by its UID, which end with it: pods come and go, and each has a name of its own. */
  const series = new Map<string, Map<string, { labels: readonly string[]; count: CounterSeries }>>();
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
      duration.observe(run.tookMs / 1000, [NAMES[run.kind]]);
      const event = probeEvent(run);
      if (event !== undefined) journal.of(pod).event("Warning", event.reason, { message: event.message, container });
    },
    changed: (change) => {
      journal.of(change.pod).note("probe", changeWord(change), change.container);
      changed(change);
    },
    forgotten: ({ uid }) => {
      for (const one of series.get(uid)?.values() ?? []) total.remove(one.labels);
      series.delete(uid);
    },
  };
}

/** The event that a run raises, in the words of Kubernetes; a success raises none. */
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
