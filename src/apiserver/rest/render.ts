import type { RouteAnswer } from "../../adapters/net/http-route.ts";
import type { Status } from "../../model/generated/types.ts";
import type { ApiObject, Kind } from "../kinds/kind.ts";
import { kindForm } from "../operations/context.ts";
import type { ListPage } from "../operations/list.ts";
import type { StoredObject } from "../store/index.ts";
import type { OutputFormat } from "./negotiate.ts";

/** How objects are written for one request. */
export interface Rendering {
  readonly kind: Kind;
  readonly format: OutputFormat;
  /** What rows of a table hold of their object. */
  readonly includeObject: "None" | "Metadata" | "Object";
  /** Milliseconds since 1970, for ages. */
  readonly now: number;
}

/** An object as JSON text. */
export function objectText(rendering: Rendering, object: StoredObject): string {
  const { kind, format } = rendering;
  if (format.as === "table") return JSON.stringify(tableOfObjects(rendering, [object], { revision: object.revision }));
  if (format.as === "metadata") return JSON.stringify(partialOf(kind, object, format.version));
  return kind.storedAs === undefined ? object.text : JSON.stringify(typedObject(kind, object));
}

/** A list that is written item by item: nothing of it has to be in memory as a whole. */
export interface ListForm {
  readonly head: object;
  /** The field of the items, which is the last one. */
  readonly field: "items" | "rows";
  /** One of them as JSON text. */
  itemText(object: StoredObject): string;
}

/** How a list is written. */
export function listForm(rendering: Rendering, page: Omit<ListPage, "items">): ListForm {
  const { kind, format } = rendering;
  const metadata = {
    resourceVersion: String(page.revision),
    ...(page.continue !== "" && { continue: page.continue }),
    ...(page.remaining !== undefined && { remainingItemCount: page.remaining }),
  };
  const { version } = format;
  if (format.as === "table") {
    const itemText = (object: StoredObject): string => JSON.stringify(tableRow(rendering, object));
    return { head: tableHead(rendering, { metadata }), field: "rows", itemText };
  }
  if (format.as === "metadata") {
    const head = { kind: "PartialObjectMetadataList", apiVersion: `meta.k8s.io/${version}`, metadata };
    return { head, field: "items", itemText: (object) => JSON.stringify(partialOf(kind, object, version)) };
  }
  const head = { kind: `${kind.resource.kind}List`, apiVersion: kind.apiVersion, metadata };
  // The texts are sent as they are: nothing is parsed for the plainest of all requests.
  return { head, field: "items", itemText: (object) => itemText(kind, object) };
}

/** Items of a list do not repeat kind and version. */
function itemText(kind: Kind, object: StoredObject): string {
  const text = kind.storedAs === undefined ? object.text : JSON.stringify(typedObject(kind, object));
  const head = `{"kind":${JSON.stringify(kind.resource.kind)},"apiVersion":${JSON.stringify(kind.apiVersion)},`;
  return text.startsWith(head) ? `{${text.slice(head.length)}` : text;
}

function typedObject(kind: Kind, object: StoredObject): object {
  return typed(kind, kindForm(kind, object.parse()));
}

function typed(kind: Kind, object: ApiObject): object {
  const { metadata, apiVersion: _version, kind: _kind, ...rest } = object;
  return { kind: kind.resource.kind, apiVersion: kind.apiVersion, metadata, ...rest };
}

/** An object without anything but its metadata. */
export function partialOf(kind: Kind, object: StoredObject, version = "v1"): object {
  return partial(kindForm(kind, object.parse()), version);
}

function partial({ metadata }: ApiObject, version: string): object {
  return { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${version}`, metadata };
}

interface TableMeta {
  readonly revision?: number;
  readonly metadata?: object;
}

/** Objects as `kubectl get` shows them. */
export function tableOfObjects(rendering: Rendering, objects: readonly StoredObject[], meta: TableMeta): object {
  return { ...tableHead(rendering, meta), rows: objects.map((stored) => tableRow(rendering, stored)) };
}

function tableHead(
  { kind, format }: Rendering,
  { revision, metadata = { resourceVersion: String(revision ?? 0) } }: TableMeta,
): object {
  const { columns } = kind.table;
  return {
    kind: "Table",
    apiVersion: `meta.k8s.io/${format.version}`,
    metadata,
    columnDefinitions: columns.map(({ name, type, format: shown = "", description = "", priority = 0 }) => ({
      name,
      type,
      format: shown,
      description,
      priority,
    })),
  };
}

function tableRow({ kind, format, includeObject, now }: Rendering, stored: StoredObject): object {
  const object = kindForm(kind, stored.parse());
  const row = { cells: kind.table.cells(object, now), ...completed(object) };
  if (includeObject === "None") return row;
  return { ...row, object: includeObject === "Object" ? typed(kind, object) : partial(object, format.version) };
}

/** Pods that have ended are marked, so that clients may leave them out. */
function completed(object: ApiObject): { readonly conditions?: readonly object[] } {
  const phase = object.kind === "Pod" && "status" in object ? phaseOf(object.status) : undefined;
  if (phase !== "Succeeded" && phase !== "Failed") return {};
  const message = phase === "Succeeded" ? "The pod has completed successfully." : "The pod failed.";
  return { conditions: [{ type: "Completed", status: "True", reason: phase, message }] };
}

function phaseOf(status: unknown): unknown {
  return typeof status === "object" && status !== null && "phase" in status ? status.phase : undefined;
}

/** An answer of JSON text, or of YAML if the client asked for it. */
export async function textAnswerOf(status: number, text: string, format: OutputFormat): Promise<RouteAnswer> {
  if (format.encoding === "json") return { status, type: "application/json", body: `${text}\n` };
  // Imported at first use: only people ask for it.
  const { stringify } = await import("yaml");
  return { status, type: "application/yaml", body: stringify(JSON.parse(text), { aliasDuplicateObjects: false }) };
}

/** The answer of a failed request. */
export function statusAnswer(status: Status): RouteAnswer {
  const seconds = status.details?.retryAfterSeconds ?? 0;
  const headers = seconds > 0 ? { headers: { "retry-after": String(seconds) } } : {};
  return { status: status.code ?? 500, type: "application/json", ...headers, body: `${JSON.stringify(status)}\n` };
}
