import { canonicalJson } from "../model/canonical-json.ts";
import type { NodeCondition, NodeStatus } from "../model/generated/types.ts";
import { isExtendedResource } from "./capacity.ts";
import { CONFIG_CONDITION } from "./config-status.ts";

/**
 * What was sent last of each field and what the server made of it: an older server drops fields without a word. Fields
 * that were not part of a patch are not in here, or another's change would be taken for the server's own.
 */
export interface SentStatus {
  readonly sent: NodeStatus;
  readonly answer: NodeStatus;
}

/** Lists that the server replaces as a whole. */
const LISTS = ["addresses", "images", "runtimeHandlers", "declaredFeatures", "volumesInUse"] as const;
/** Objects that the server merges key by key: what is to go has to be named. */
const MAPS = ["capacity", "allocatable", "daemonEndpoints", "nodeInfo", "features"] as const;

type Field = (typeof LISTS)[number] | (typeof MAPS)[number];

interface Sides {
  readonly known: NodeStatus | undefined;
  readonly last: SentStatus | undefined;
}

/**
 * The strategic-merge patch that makes the node's status what is wanted; undefined when it is. Conditions are compared
 * without their heartbeat; `refresh` sends them whatever they say. Pure.
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
    // Merged by type alone, two addresses of one type would melt into one.
    status[field] = field === "addresses" ? [...list, { $patch: "replace" }] : list;
  }
  for (const field of MAPS) {
    const changes = mapChanges(field, wanted, known);
    if (changes !== undefined && !isDropped(field, wanted, { known, last })) status[field] = changes;
  }
  const changed = (wanted.conditions ?? []).some((condition) => !isSame(condition, known?.conditions));
  const over = conditionsOver(wanted, known);
  if (Object.keys(status).length === 0 && !changed && over.length === 0 && !refresh) return undefined;
  return { status: { ...status, conditions: [...(wanted.conditions ?? []), ...over] } };
}

/** What is known after a patch was answered. Pure. */
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

/** The same was sent before, and what the server made of it is what it still has: sent again it would not help. */
function isDropped(field: Field, wanted: NodeStatus, { known, last }: Sides): boolean {
  return (
    last !== undefined &&
    Object.hasOwn(last.sent, field) &&
    canonicalJson(wanted[field]) === canonicalJson(last.sent[field]) &&
    canonicalJson(known?.[field]) === canonicalJson(last.answer[field])
  );
}

/** The keys that differ, with null for those that are over; undefined when none does. */
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
    // Fields that are empty are left out by the server.
    if (canonicalJson(value) !== canonicalJson(before.get(key) ?? "")) changes[key] = value;
  }
  for (const key of before.keys()) {
    // Whoever advertises an extended resource patches the capacity himself. What we cannot give is not allocatable.
    const isOfOthers = field === "capacity" && isExtendedResource(key);
    if (!after.has(key) && !isOfOthers) changes[key] = null;
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** Our own condition that is not always there goes when there is nothing more to tell; those of others stay. */
function conditionsOver(wanted: NodeStatus, known: NodeStatus | undefined): object[] {
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
