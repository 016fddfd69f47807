import type { Abortable } from "../lib/abort.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Pod } from "../model/generated/types.ts";
import type { PodEvent } from "../model/step.ts";
import { EventRecorder, type RecorderDeps } from "./recorder.ts";
import { eventSubject } from "./subject.ts";

export interface RecordJournalDeps extends Omit<RecorderDeps, "dropped"> {
  readonly metrics: Metrics;
  readonly journal: { onEvent(fn: (event: PodEvent) => void, options: Abortable): void };
  /** The pod of a UID, if it is known. */
  podOf(uid: string): Pod | undefined;
}

/** Records the events of the journal on the API server; the loop sends them. */
export function recordJournal(deps: RecordJournalDeps, nodeName: string, { signal }: Abortable): Loop {
  const dropped = deps.metrics.counter(
    "kubelet_ts_events_dropped_total",
    "Number of events that were dropped because the queue was full.",
  );
  const recorder = new EventRecorder({ ...deps, dropped: () => dropped.inc() }, { nodeName });
  deps.journal.onEvent(
    (event) => {
      const about = eventSubject(event, deps.podOf(event.pod.uid), nodeName);
      const { type, reason, message, annotations } = event;
      if (about !== undefined) recorder.record({ type, reason, message, about, ...(annotations && { annotations }) });
    },
    { signal },
  );
  return { name: "events", run: (stop) => recorder.run(stop) };
}
