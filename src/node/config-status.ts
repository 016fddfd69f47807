import type { ConfigSource, DynamicReport } from "../config/index.ts";
import { sourceId, sourceName } from "../config/index.ts";
import type { NodeCondition, NodeConfigSource, NodeConfigStatus } from "../model/generated/types.ts";

/** The status of the dynamic configuration as JSON; written by the agent only. */
export const CONFIG_STATUS_ANNOTATION = "kubelet-ts/config-status";
/** True while the assigned configuration is in force, as in v1.10. */
export const CONFIG_CONDITION = "KubeletConfigOk";

/** Long lists of problems are truncated: the agent's log and `kubelet config view` have all of them. */
const MOST_CHARACTERS = 1024;

/** False while the node runs with its local files and none is assigned. Pure. */
export function isDynamicInUse({ state, assigned, followed }: DynamicReport): boolean {
  return state !== "local" || assigned !== undefined || followed !== undefined;
}

/** Returns the error: one that prevents loading takes precedence over one of the loaded configuration. Pure. */
export function configTrouble({ error, followed }: DynamicReport): string | undefined {
  const trouble = followed?.error === undefined ? error : `failed to sync: ${followed.error}`;
  return trouble === undefined || trouble.length <= MOST_CHARACTERS ? trouble : `${trouble.slice(0, MOST_CHARACTERS)}…`;
}

/** Returns the node condition, or none if nothing is to report. An unchanged status keeps its time. Pure. */
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

/** Returns the annotation's value; undefined for none. Pure. */
export function configAnnotation(report: DynamicReport): string | undefined {
  if (!isDynamicInUse(report)) return undefined;
  const { assigned, active, lastKnownGood } = report;
  const error = configTrouble(report);
  const refs = { assigned: shown(assigned), active: shown(active), lastKnownGood: shown(lastKnownGood) };
  return JSON.stringify({ ...refs, ...(error !== undefined && { error }) });
}

/** `status.config` of v1.11 to v1.23. Only ConfigMaps can be part of it. Pure. */
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
