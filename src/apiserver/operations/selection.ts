import type { Abortable } from "../../lib/abort.ts";
import { eventLoopTurn } from "../../lib/turn.ts";
import type { ApiObject, Kind } from "../kinds/kind.ts";
import { decodeTree } from "../schema/decode-tree.ts";
import { matchesFields, parseFieldQuery, requiredValue } from "../select/field-query.ts";
import { parseLabelQuery } from "../select/label-query.ts";
import { badRequest } from "../status/status-error.ts";
import type { FactsReader, StoredObject } from "../store/index.ts";
import { kindForm, type Target } from "./context.ts";

/** Which objects of a collection a request is about. */
export interface SelectionQuery {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** A parsed selection. */
export interface Selection {
  /** True if every object of the namespace is selected. */
  readonly isAll: boolean;
  /** True if every object of the collection is selected. */
  readonly isEvery: boolean;
  /** The only name that may match, if the selector says one. */
  readonly name: string | undefined;
  matches(object: StoredObject): boolean;
}

/** Parses what a request selects. Throws `StatusError` for a selector that is wrong or not supported by the kind. */
export function parseSelection(
  { kind, namespace }: Pick<Target, "kind" | "namespace">,
  { labelSelector = "", fieldSelector = "" }: SelectionQuery,
): Selection {
  const matchesLabels = parseLabelQuery(labelSelector);
  const conditions = parseFieldQuery(fieldSelector);
  checkFields(kind, conditions);
  const isBare = labelSelector.trim() === "" && conditions.length === 0;
  const facts = factsOf(kind);
  const matches = (object: StoredObject): boolean => {
    if (namespace !== "" && object.namespace !== namespace) return false;
    if (isBare) return true;
    const { labels, fields } = object.selectable(facts);
    return matchesLabels(labels) && matchesFields(conditions, fields);
  };
  return {
    isAll: isBare,
    isEvery: isBare && namespace === "",
    name: requiredValue(conditions, "metadata.name"),
    matches,
  };
}

/** Characters of objects that are selected from in one go: looking inside means to parse them. */
const PIECE = 512 * 1024;

/** The matching objects in order, with turns for others in between. Rejects when it is aborted. */
export async function* selectInPieces(
  objects: readonly StoredObject[],
  selection: Selection,
  { signal }: Abortable,
): AsyncGenerator<readonly StoredObject[]> {
  for (const matching of selectedPieces(objects, selection)) {
    yield matching;
    await eventLoopTurn();
    signal.throwIfAborted();
  }
}

/** The matching objects in order, in pieces that cost about the same; a piece may be empty. */
export function* selectedPieces(
  objects: readonly StoredObject[],
  { matches }: Selection,
): Generator<readonly StoredObject[]> {
  let matching: StoredObject[] = [];
  let length = 0;
  for (const object of objects) {
    if (matches(object)) matching.push(object);
    length += object.text.length;
    if (length < PIECE) continue;
    yield matching;
    matching = [];
    length = 0;
  }
  if (length > 0) yield matching;
}

/** One for each kind, by which objects remember what was read. */
const readers = new WeakMap<Kind, FactsReader>();

function factsOf(kind: Kind): FactsReader {
  const known = readers.get(kind);
  if (known !== undefined) return known;
  const reader = makeReader(kind);
  readers.set(kind, reader);
  return reader;
}

function makeReader(kind: Kind): FactsReader {
  return (tree) => {
    const object = kindForm(kind, tree);
    const { name = "", namespace = "", labels = {} } = object.metadata;
    const own = kind.selectableFields?.(object) ?? {};
    const place = { "metadata.name": name, ...(kind.resource.isNamespaced && { "metadata.namespace": namespace }) };
    return { labels, fields: { ...own, ...place } };
  };
}

/** The fields that a kind can be selected by: those of an empty object. */
function checkFields(kind: Kind, conditions: readonly { readonly field: string }[]): void {
  if (conditions.length === 0) return;
  // An empty object of the kind, in the form that it would be stored in.
  const empty = decodeTree(kind.schemaType, {}).object as unknown as ApiObject;
  const own = Object.keys(kind.selectableFields?.(empty) ?? {});
  const supported = ["metadata.name", ...(kind.resource.isNamespaced ? ["metadata.namespace"] : []), ...own];
  for (const { field } of conditions) {
    if (supported.includes(field)) continue;
    if (own.length > 0) throw badRequest(`field label not supported: ${field}`);
    throw badRequest(`"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`);
  }
}
