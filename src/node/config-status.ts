import type { ConfigSource, DynamicReport } from "../config/index.ts";
import { sourceId, sourceName } from "../config/index.ts";
import type { NodeCondition, NodeConfigSource, NodeConfigStatus } from "../model/generated/types.ts";

/** Tells what became of the dynamic configuration, as JSON; written by the agent only. */
export const CONFIG_STATUS_ANNOTATION = "kubelet-ts/config-status";
/** True while the configuration in force is the one that is wanted; as in v1.10. */
export const CONFIG_CONDITION = "KubeletConfigOk";

/** Long lists of problems are cut: the whole is in the agent's log and in `kubelet config view`. */
const MOST_CHARACTERS = 1024;

/** False while the node runs with nothing but its own files, and nothing else is wanted. Pure. */
export function isDynamicInUse({ state, assigned, followed }: DynamicReport): boolean {
  return state !== "local" || assigned !== undefined || followed !== undefined;
}

/** What is wrong: what keeps the wanted one from coming goes before what was wrong with the one that came. Pure. */
export function configTrouble({ error, followed }: DynamicReport): string | undefined {
  const trouble = followed?.error === undefined ? error : `failed to sync: ${followed.error}`;
  return trouble === undefined || trouble.length <= MOST_CHARACTERS ? trouble : `${trouble.slice(0, MOST_CHARACTERS)}…`;
}

/** The condition of the node, or none while there is nothing to tell. One that says what it said keeps its time. Pure. */
export function configConditions(
  report: DynamicReport,
  previous: readonly NodeCondition[] | undefined,
  now: string,
): readonly NodeCondition[] {
  if (!isDynamicInUse(report)) return [];
  const [status, reason, message] = judged(report);
  const before = previous?.find(({ type }) => type === CONFIG_CONDITION);
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
  return [{ type: CONFIG_CONDITION, status, reason, message, lastHeartbeatTime: now, lastTransitionTime }];
}

function judged(report: DynamicReport): readonly [status: "True" | "False", reason: string, message: string] {
  const { state, active, followed, waitsForRestart } = report;
  const inForce = active === undefined ? "the local configuration" : `${sourceName(active)} (${sourceId(active)})`;
  const trouble = configTrouble(report);
  if (trouble !== undefined) {
    return ["False", followed?.error === undefined ? "RolledBack" : "SyncFailed", `${trouble}; in force: ${inForce}`];
  }
  const waits = waitsForRestart === true ? "; some of its settings wait for a restart of the agent" : "";
  if (state === "trial") return ["True", "OnTrial", `in force, on trial: ${inForce}${waits}`];
  if (state === "good") return ["True", "LastKnownGood", `in force, and the last known good: ${inForce}${waits}`];
  return ["True", "Local", `in force: ${inForce}`];
}

/** The annotation's value; undefined for none. Pure. */
export function configAnnotation(report: DynamicReport): string | undefined {
  if (!isDynamicInUse(report)) return undefined;
  const { assigned, active, lastKnownGood } = report;
  const error = configTrouble(report);
  const refs = { assigned: shown(assigned), active: shown(active), lastKnownGood: shown(lastKnownGood) };
  return JSON.stringify({ ...refs, ...(error !== undefined && { error }) });
}

/** `status.config` of v1.11 to v1.23. What is no ConfigMap has no place there. Pure. */
export function configStatus(report: DynamicReport): NodeConfigStatus {
  const { assigned, active, lastKnownGood } = report;
  const error = configTrouble(report);
  return {
    ...named("assigned", assigned),
    ...named("active", active),
    ...named("lastKnownGood", lastKnownGood),
    ...(error !== undefined && { error }),
  };
}

function named(name: "assigned" | "active" | "lastKnownGood", source: ConfigSource | undefined): NodeConfigStatus {
  return source?.kind === "configMap" ? { [name]: reference(source) } : {};
}

function shown(source: ConfigSource | undefined): object | undefined {
  if (source?.kind !== "file") return source && reference(source);
  return { file: { name: source.name, resourceVersion: source.resourceVersion } };
}

function reference({ namespace, name, uid, resourceVersion, key }: ConfigSource): NodeConfigSource {
  return { configMap: { namespace, name, uid, resourceVersion, kubeletConfigKey: key } };
}
