import { EVENTS, NEW_EVENTS } from "../../../adapters/kubeapi/index.ts";
import type { Event, EventsEvent, ObjectReference } from "../../../model/generated/types.ts";
import { invalid } from "../../status/field-error.ts";
import type { JsonObject } from "../../store/index.ts";
import { tableOf } from "../../tables/columns.ts";
import { since } from "../../tables/human-duration.ts";
import { defineKind } from "../kind.ts";

/** Events are kept for an hour, as in Kubernetes. */
const TTL_MS = 3_600_000;

const REFERENCE_FIELDS = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"] as const;

const table = tableOf<Event>([
  { name: "Last Seen", cell: lastSeen },
  { name: "Type", cell: ({ type = "" }) => type },
  { name: "Reason", cell: ({ reason = "" }) => reason },
  {
    name: "Object",
    cell: ({ involvedObject: { kind = "", name = "" } }) =>
      name === "" ? kind.toLowerCase() : `${kind.toLowerCase()}/${name}`,
  },
  { name: "Subobject", isWide: true, cell: ({ involvedObject }) => involvedObject.fieldPath ?? "" },
  { name: "Source", isWide: true, cell: sourceText },
  { name: "Message", cell: ({ message = "" }) => message.trim() },
  { name: "First Seen", isWide: true, cell: firstSeen },
  { name: "Count", isWide: true, cell: ({ series, count }) => series?.count ?? (count || 1) },
  { name: "Name", format: "name", isWide: true, cell: ({ metadata }) => metadata.name ?? "" },
]);

export const eventKind = defineKind<Event>({
  resource: EVENTS,
  shortNames: ["ev"],
  createsOnUpdate: true,
  propagation: "Unsupported",
  ttlMs: TTL_MS,
  validate: ({ metadata, involvedObject }) => {
    const { namespace = "" } = involvedObject;
    const isDefault = namespace === "" && (metadata.namespace === "default" || metadata.namespace === "kube-system");
    if (isDefault || namespace === metadata.namespace) return [];
    return [invalid("involvedObject.namespace", namespace, "does not match event.namespace")];
  },
  selectableFields: ({ involvedObject, reason = "", type = "", source, reportingComponent = "" }) => ({
    ...referenceFields("involvedObject", involvedObject),
    reason,
    reportingComponent,
    source: source?.component || reportingComponent,
    type,
  }),
  table,
});

/** The same objects in their newer form. */
export const newEventKind = defineKind<EventsEvent>({
  resource: NEW_EVENTS,
  type: "EventsEvent",
  shortNames: ["ev"],
  createsOnUpdate: true,
  propagation: "Unsupported",
  ttlMs: TTL_MS,
  storedAs: { resource: EVENTS, toStored, fromStored },
  selectableFields: ({ regarding = {}, reason = "", type = "", reportingController = "" }) => ({
    ...referenceFields("regarding", regarding),
    reason,
    reportingController,
    type,
  }),
  table: {
    columns: table.columns,
    // The table reads the stored form.
    cells: (event, now) => table.cells(toStored(event) as unknown as Event, now),
  },
});

function toStored(event: EventsEvent): JsonObject {
  const {
    apiVersion: _version,
    regarding,
    note,
    reportingController,
    deprecatedSource,
    deprecatedFirstTimestamp,
    deprecatedLastTimestamp,
    deprecatedCount,
    kind,
    metadata,
    ...same
  } = event;
  return {
    kind,
    apiVersion: "v1",
    metadata,
    involvedObject: regarding ?? {},
    ...(note !== undefined && { message: note }),
    source: deprecatedSource ?? {},
    firstTimestamp: deprecatedFirstTimestamp ?? null,
    lastTimestamp: deprecatedLastTimestamp ?? null,
    ...(deprecatedCount !== undefined && { count: deprecatedCount }),
    ...same,
    reportingComponent: reportingController ?? "",
    reportingInstance: event.reportingInstance ?? "",
  };
}

function fromStored(stored: JsonObject): EventsEvent {
  // What is stored was decoded as an event.
  const event = stored as unknown as Event;
  const {
    apiVersion: _version,
    involvedObject,
    message,
    source,
    firstTimestamp,
    lastTimestamp,
    count,
    reportingComponent,
    ...same
  } = event;
  const converted = {
    ...same,
    apiVersion: "events.k8s.io/v1",
    ...(involvedObject && { regarding: involvedObject }),
    ...(message !== undefined && { note: message }),
    ...(source && { deprecatedSource: source }),
    deprecatedFirstTimestamp: firstTimestamp ?? null,
    deprecatedLastTimestamp: lastTimestamp ?? null,
    ...(count !== undefined && { deprecatedCount: count }),
    ...(reportingComponent && { reportingController: reportingComponent }),
  };
  // Older clients leave out what the newer form requires; it is shown as it is.
  return converted as unknown as EventsEvent;
}

function firstSeen({ firstTimestamp, eventTime }: Event, now: number): string {
  return since(firstTimestamp || eventTime, now);
}

function lastSeen(event: Event, now: number): string {
  if (event.series !== undefined) return since(event.series.lastObservedTime, now);
  return event.lastTimestamp ? since(event.lastTimestamp, now) : firstSeen(event, now);
}

function sourceText({ source, reportingComponent, reportingInstance }: Event): string {
  const component = source?.component || reportingComponent || "";
  const host = source?.host || reportingInstance || "";
  return host === "" ? component : `${component}, ${host}`;
}

/** The fields of a reference by which events are selected. */
function referenceFields(field: string, reference: ObjectReference): Readonly<Record<string, string>> {
  return Object.fromEntries(REFERENCE_FIELDS.map((name) => [`${field}.${name}`, reference[name] ?? ""]));
}
