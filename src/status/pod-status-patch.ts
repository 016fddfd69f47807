import { canonicalJson } from "../model/canonical-json.ts";
import type { PodCondition, PodStatus } from "../model/generated/types.ts";

/** The conditions that the agent owns; all others belong to other writers and are never changed. */
const OWN_CONDITIONS = new Set([
  ...["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled", "DisruptionTarget"],
  ...["PodResizePending", "PodResizeInProgress", "AllContainersRestarting"],
]);
/** Fields that are sent whole, and set to null when they are no longer reported. */
const PLAIN = ["phase", "reason", "message", "hostIP", "podIP", "observedGeneration", "resize"] as const;
/** Fields that are sent whole, and never set to null. */
const WHOLE = [
  ...(["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] as const),
  ...(["resources", "allocatedResources"] as const),
] as const;
/** Lists that the server merges by `ip`: without a replace directive a removed address would stay for ever. */
const ADDRESSES = ["podIPs", "hostIPs"] as const;
/** The first address of each list, which the server refuses if it is another one. */
const FIRST_OF = { podIPs: "podIP", hostIPs: "hostIP" } as const;

/**
 * The last value sent for each field and condition, and what the server stored: a dropped field is not sent again.
 * Fields that were not part of a patch are missing, otherwise a change by another client would count as the server's.
 */
export interface SentPodStatus {
  readonly sent: PodStatus;
  readonly answer: PodStatus;
}

/** The status that the server has, and what was sent last. */
export interface ServerSide {
  readonly status: PodStatus | undefined;
  readonly last: SentPodStatus | undefined;
}

/**
 * Returns the part of a strategic-merge patch below `status` from the server's status to ours; undefined if nothing
 * differs. Never contains what did not change. Pure.
 */
export function podStatusPatch(wanted: PodStatus, server: ServerSide): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  const held = holdBack(wanted, server.status);
  const known = server.status ?? {};
  for (const field of PLAIN) {
    if (!isNews(field, held, server)) continue;
    patch[field] = held[field] ?? null;
  }
  for (const field of WHOLE) if (held[field] !== undefined && isNews(field, held, server)) patch[field] = held[field];
  for (const field of ADDRESSES) {
    // A list that is not reported stays, unless its first address goes.
    if ((held[field] === undefined && patch[FIRST_OF[field]] !== null) || !isNews(field, held, server)) continue;
    if (held[field] === undefined) patch[field] = null;
    else patch[field] = (known[field] ?? []).length === 0 ? held[field] : [...held[field], { $patch: "replace" }];
  }
  // Set once, never changed.
  for (const field of ["startTime", "qosClass"] as const) {
    if (held[field] !== undefined && known[field] === undefined && isNews(field, held, server))
      patch[field] = held[field];
  }
  const conditions = conditionChanges(held, server);
  if (conditions.length > 0) patch["conditions"] = conditions;
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** Returns the memory after the server answered a patch. Pure. */
export function rememberSent(
  patch: Readonly<Record<string, unknown>>,
  told: { readonly status: PodStatus; readonly answer: PodStatus; readonly last: SentPodStatus | undefined },
): SentPodStatus {
  const { status, answer, last } = told;
  const { conditions, ...fields } = patch;
  const types = new Set(Array.isArray(conditions) ? conditions.map(({ type }: PodCondition) => type) : []);
  const merged = (now: PodStatus, before: PodStatus | undefined): PodStatus => ({
    ...before,
    // The keys of a patch are field names.
    ...Object.fromEntries(Object.keys(fields).map((field) => [field, now[field as keyof PodStatus]])),
    conditions: [
      ...(before?.conditions ?? []).filter(({ type }) => !types.has(type)),
      ...(now.conditions ?? []).filter(({ type }) => types.has(type)),
    ],
  });
  return { sent: merged(status, last?.sent), answer: merged(answer, last?.answer) };
}

/** Holds back a terminal phase while a container may still run: others would take over the pod's resources. */
function holdBack(wanted: PodStatus, known: PodStatus | undefined): PodStatus {
  const isTerminal = wanted.phase === "Succeeded" || wanted.phase === "Failed";
  if (!isTerminal || known?.phase === wanted.phase) return wanted;
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = wanted;
  const all = [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses];
  if (!all.some(({ state }) => state?.running !== undefined)) return wanted;
  const { phase: _phase, reason: _reason, message: _message, ...rest } = wanted;
  return {
    ...rest,
    phase: known?.phase ?? "Pending",
    ...(known?.reason !== undefined && { reason: known.reason }),
    ...(known?.message !== undefined && { message: known.message }),
    conditions: wanted.conditions?.filter(({ type }) => type !== "DisruptionTarget"),
  };
}

function isNews(field: keyof PodStatus, wanted: PodStatus, { status, last }: ServerSide): boolean {
  const text = textOf(wanted[field]);
  if (text === textOf(status?.[field])) return false;
  return (
    last === undefined || text !== textOf(last.sent[field]) || textOf(status?.[field]) !== textOf(last.answer[field])
  );
}

function conditionChanges(wanted: PodStatus, { status, last }: ServerSide): object[] {
  const find = (of: PodStatus | undefined, type: string): PodCondition | undefined =>
    of?.conditions?.find((condition) => condition.type === type);
  const changed: object[] = [];
  for (const condition of wanted.conditions ?? []) {
    const known = find(status, condition.type);
    if (isSame(condition, known)) continue;
    const isDropped =
      last !== undefined &&
      isSame(condition, find(last.sent, condition.type)) &&
      isSame(known, find(last.answer, condition.type));
    if (isDropped) continue;
    const keepsTime = known?.status === condition.status && known.lastTransitionTime !== undefined;
    changed.push({
      ...condition,
      ...(keepsTime && { lastTransitionTime: known.lastTransitionTime }),
      // The server merges field by field: what is no longer reported has to be null.
      ...(known?.reason && !condition.reason && { reason: null }),
      ...(known?.message && !condition.message && { message: null }),
    });
  }
  for (const { type } of status?.conditions ?? []) {
    const isGone = OWN_CONDITIONS.has(type) && type !== "DisruptionTarget" && find(wanted, type) === undefined;
    if (isGone && wanted.conditions !== undefined) changed.push({ $patch: "delete", type });
  }
  return changed;
}

function isSame(a: PodCondition | undefined, b: PodCondition | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.status === b.status &&
    (a.reason ?? "") === (b.reason ?? "") &&
    (a.message ?? "") === (b.message ?? "") &&
    (a.observedGeneration ?? 0) === (b.observedGeneration ?? 0)
  );
}

/** Returns equal texts for values that are equal to the server: missing, null and empty are the same. */
function textOf(value: unknown): string {
  return canonicalJson(bare(value));
}

function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bare);
  if (typeof value !== "object" || value === null) return value ?? undefined;
  const entries = Object.entries(value)
    .map(([key, inner]): [string, unknown] => [key, bare(inner)])
    .filter(([, inner]) => inner !== undefined && inner !== "" && !isEmptyObject(inner));
  return Object.fromEntries(entries);
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}
