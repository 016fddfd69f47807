import { canonicalJson } from "../../model/canonical-json.ts";
import { fnv1a32 } from "../../model/fnv.ts";
import type { Container } from "../../model/generated/types.ts";

/** The crash history that decides how long a container waits before it is started again. */
export interface CrashState {
  /** How long the next restart waits after the container terminated. */
  readonly delayMs: number;
  /** Wall-clock milliseconds of the restart that set the delay. */
  readonly restartedAt: number;
  /** The `crashKey` of the container that crashed; undefined if it applies whatever has changed. */
  readonly key?: string;
}

export interface CrashLimits {
  readonly initialMs: number;
  readonly maxMs: number;
}

/** 10 s doubling to 5 min, as in Kubernetes. */
export const DEFAULT_CRASH_LIMITS: CrashLimits = { initialMs: 10_000, maxMs: 300_000 };

/** The default limits with another maximum, which is read at each restart. */
export function crashLimits(maxMs: () => number | undefined): CrashLimits {
  return {
    initialMs: DEFAULT_CRASH_LIMITS.initialMs,
    get maxMs() {
      return maxMs() ?? DEFAULT_CRASH_LIMITS.maxMs;
    },
  };
}

/** A container that ran longer than this since its last restart has no crash history, as in Kubernetes (10 min). */
const FORGOTTEN_AFTER_MS = 600_000;

/**
 * Milliseconds until a container that terminated at `finishedAt` may restart; 0 or less means now.
 * The first restart is immediate; exit code 0 counts like any other.
 */
export function crashWait(state: CrashState | undefined, finishedAt: number, wallNow: number): number {
  if (state === undefined || isForgotten(state, finishedAt)) return 0;
  const since = Math.max(0, wallNow - finishedAt);
  return state.delayMs - since;
}

/** The crash history after a restart at `wallNow` of a container that terminated at `finishedAt`. */
export function afterRestart(
  state: CrashState | undefined,
  times: { finishedAt: number; wallNow: number },
  limits: CrashLimits,
): CrashState {
  const fresh = state === undefined || isForgotten(state, times.finishedAt);
  const delayMs = fresh ? limits.initialMs : Math.min(state.delayMs * 2, limits.maxMs);
  return { delayMs: Math.min(delayMs, limits.maxMs), restartedAt: times.wallNow };
}

function isForgotten(state: CrashState, finishedAt: number): boolean {
  return finishedAt - state.restartedAt > FORGOTTEN_AFTER_MS;
}

/** Identifies what crashed: another image or other allocated resources reset the back-off, as in Kubernetes. */
export function crashKey({ image = "", resources = {} }: Pick<Container, "image" | "resources">): string {
  return fnv1a32(new TextEncoder().encode(canonicalJson({ image, resources }))).toString(16);
}

/** Returns the crash history that applies to a container as it is specified now. */
export function crashOf(crashes: ReadonlyMap<string, CrashState>, container: Container): CrashState | undefined {
  const state = crashes.get(container.name);
  return state?.key === undefined || state.key === crashKey(container) ? state : undefined;
}

/** The form in which it is recorded on a container. */
export function formatCrash({ delayMs, restartedAt, key }: CrashState): string {
  return JSON.stringify({ delayMs, restartedAt, key });
}

/** Parses what an earlier agent recorded, the first of them without a key; undefined if it is invalid. */
export function parseCrash(text: string | undefined): CrashState | undefined {
  const match = /^\{"delayMs":(\d+),"restartedAt":(\d+)(?:,"key":"([0-9a-f]{1,8})")?\}$/.exec(text ?? "");
  if (match === null) return undefined;
  const [, delayMs, restartedAt, key] = match;
  return { delayMs: Number(delayMs), restartedAt: Number(restartedAt), ...(key && { key }) };
}
