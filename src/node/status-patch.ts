import { canonicalJson } from "../model/canonical-json.ts";
import type { NodeCondition, NodeStatus } from "../model/generated/types.ts";
import { CONFIG_CONDITION } from "./config-status.ts";

/**
 * The last value sent for each field and what the server stored: an older server silently drops fields. Fields that
 * were not part of a patch are missing, otherwise a change by another client would count as the server's own.
 */
export interface SentStatus {
  readonly sent: NodeStatus;
  readonly answer: NodeStatus;
}

/** Lists that the server replaces whole. */
const LISTS = ["addresses", "images", "runtimeHandlers", "declaredFeatures", "volumesInUse"] as const;
/** Objects that the server merges key by key: a key to remove has to be null. */
const MAPS = ["capacity", "allocatable", "daemonEndpoints", "nodeInfo", "features"] as const;

type Field = (typeof LISTS)[number] | (typeof MAPS)[number];

interface Sides {
  readonly known: NodeStatus | undefined;
  readonly last: SentStatus | undefined;
}

/**
 * Returns the strategic-merge patch from the known to the wanted status; undefined if nothing differs. Conditions are
 * compared without their heartbeat; `refresh` sends them unchanged. Pure.
 */
export function statusPatch(
  wanted: NodeStatus,
  { known, last, refresh }: Sides & { readonly refresh: boolean },
): { status: Record<string, unknown> } | undefined {
  const status: Record<string, unknown> = {};
  for (const field of LISTS) {
    const list = wanted[field];
    if (list === undefined || canonicalJson(list) === canonicalJson(known?.[field] ?? [])) continue;
    if (isDropped(field, wanted, { known, last })) continue;
    // The server merges addresses by type: two of one type would become one.
    status[field] = field === "addresses" ? [...list, { $patch: "replace" }] : list;
  }
  for (const field of MAPS) {
    const changes = mapChanges(field, wanted, known);
    if (changes !== undefined && !isDropped(field, wanted, { known, last })) status[field] = changes;
  }
  const changed = (wanted.conditions ?? []).some((condition) => !isSame(condition, known?.conditions));
  const obsolete = obsoleteConditions(wanted, known);
  if (Object.keys(status).length === 0 && !changed && obsolete.length === 0 && !refresh) return undefined;
  return { status: { ...status, conditions: [...(wanted.conditions ?? []), ...obsolete] } };
}

/** Returns the memory after the server answered a patch. Pure. */
export function rememberSent(
  patch: Readonly<Record<string, unknown>>,
  told: { readonly status: NodeStatus; readonly answer: NodeStatus; readonly last: SentStatus | undefined },
): SentStatus {
  const fields = [...LISTS, ...MAPS].filter((field) => patch[field] !== undefined);
  const part = (of: NodeStatus): NodeStatus => Object.fromEntries(fields.map((field) => [field, of[field]]));
  return {
    sent: { ...told.last?.sent, ...part(told.status) },
    answer: { ...told.last?.answer, ...part(told.answer) },
  };
}

/** True if the same value was sent before and the server still has what it stored then: it drops the field. */
function isDropped(field: Field, wanted: NodeStatus, { known, last }: Sides): boolean {
  return (
    last !== undefined &&
    Object.hasOwn(last.sent, field) &&
    canonicalJson(wanted[field]) === canonicalJson(last.sent[field]) &&
    canonicalJson(known?.[field]) === canonicalJson(last.answer[field])
  );
}

/** Returns the keys that differ, with null for removed ones; undefined if none does. */
function mapChanges(
  field: (typeof MAPS)[number],
  wanted: NodeStatus,
  known: NodeStatus | undefined,
): Record<string, unknown> | undefined {
  if (wanted[field] === undefined) return undefined;
  const after = new Map<string, unknown>(Object.entries(wanted[field]));
  const before = new Map<string, unknown>(Object.entries(known?.[field] ?? {}));
  const changes: Record<string, unknown> = {};
  for (const [key, value] of after) {
    // The server omits empty fields.
    if (canonicalJson(value) !== canonicalJson(before.get(key) ?? "")) changes[key] = value;
  }
  for (const key of before.keys()) {
    if (!after.has(key)) changes[key] = null;
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** Removes the configuration condition if it is no longer reported; conditions of other writers stay. */
function obsoleteConditions(wanted: NodeStatus, known: NodeStatus | undefined): object[] {
  const has = (status: NodeStatus | undefined): boolean =>
    status?.conditions?.some(({ type }) => type === CONFIG_CONDITION) ?? false;
  return has(known) && !has(wanted) ? [{ $patch: "delete", type: CONFIG_CONDITION }] : [];
}

function isSame(condition: NodeCondition, known: readonly NodeCondition[] | undefined): boolean {
  const before = known?.find(({ type }) => type === condition.type);
  return (
    before?.status === condition.status && before.reason === condition.reason && before.message === condition.message
  );
}
