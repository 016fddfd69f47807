import { canonicalJson } from "../model/canonical-json.ts";
import type { NodeCondition, NodeStatus } from "../model/generated/types.ts";
import { CONFIG_CONDITION } from "./config-status.ts";

/** What was sent last and what the server made of it, by field: an older server drops fields without a word. */
export interface SentStatus {
  readonly sent: NodeStatus;
  readonly answer: NodeStatus;
}

const FIELDS = [
  ...(["addresses", "capacity", "allocatable", "daemonEndpoints", "images", "nodeInfo"] as const),
  ...(["runtimeHandlers", "features", "declaredFeatures"] as const),
] as const;

/**
 * The strategic-merge patch that makes the node's status what is wanted; undefined when it is. Conditions are compared
 * without their heartbeat; `refresh` sends them whatever they say. Pure.
 */
export function statusPatch(
  wanted: NodeStatus,
  { known, last, refresh }: { known: NodeStatus | undefined; last: SentStatus | undefined; refresh: boolean },
): { status: Record<string, unknown> } | undefined {
  const status: Record<string, unknown> = {};
  for (const field of FIELDS) {
    if (wanted[field] === undefined) continue;
    const text = canonicalJson(wanted[field]);
    if (text === canonicalJson(known?.[field])) continue;
    const isDropped =
      last !== undefined &&
      text === canonicalJson(last.sent[field]) &&
      canonicalJson(known?.[field]) === canonicalJson(last.answer[field]);
    if (isDropped) continue;
    // Merged by type alone, two addresses of one type would melt into one.
    status[field] = field === "addresses" ? [...(wanted.addresses ?? []), { $patch: "replace" }] : wanted[field];
  }
  const changed = (wanted.conditions ?? []).some((condition) => !isSame(condition, known?.conditions));
  const over = conditionsOver(wanted, known);
  if (Object.keys(status).length === 0 && !changed && over.length === 0 && !refresh) return undefined;
  return { status: { ...status, conditions: [...(wanted.conditions ?? []), ...over] } };
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
