/** The crash history that decides how long a container waits before it is started again. */
export interface CrashState {
  /** How long the next restart has to wait after the container's end. */
  readonly delayMs: number;
  /** Wall-clock milliseconds of the restart that set the delay. */
  readonly restartedAt: number;
}

export interface CrashLimits {
  readonly initialMs: number;
  readonly maxMs: number;
}

/** 10 s doubling to 5 min, as in Kubernetes. */
export const DEFAULT_CRASH_LIMITS: CrashLimits = { initialMs: 10_000, maxMs: 300_000 };

/** Those limits with another longest wait, asked for at each restart. */
export function crashLimits(maxMs: () => number | undefined): CrashLimits {
  return {
    initialMs: DEFAULT_CRASH_LIMITS.initialMs,
    get maxMs() {
      return maxMs() ?? DEFAULT_CRASH_LIMITS.maxMs;
    },
  };
}

/** A container that ran longer than this since its last restart starts with a clean slate, as in Kubernetes (10 min). */
const FORGOTTEN_AFTER_MS = 600_000;

/**
 * Milliseconds until a container that ended at `finishedAt` may start again; 0 or less means now.
 * The first end restarts at once; an end with exit code 0 counts like any other.
 */
export function crashWait(state: CrashState | undefined, finishedAt: number, wallNow: number): number {
  if (state === undefined || isForgotten(state, finishedAt)) return 0;
  const since = Math.max(0, wallNow - finishedAt);
  return state.delayMs - since;
}

/** The state after a restart at `wallNow` of a container that ended at `finishedAt`. */
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

/** As it is written on a container. */
export function formatCrash({ delayMs, restartedAt }: CrashState): string {
  return JSON.stringify({ delayMs, restartedAt });
}

/** What an earlier agent wrote; undefined when it is nothing that it could have written. */
export function parseCrash(text: string | undefined): CrashState | undefined {
  const match = /^\{"delayMs":(\d+),"restartedAt":(\d+)\}$/.exec(text ?? "");
  return match === null ? undefined : { delayMs: Number(match[1]), restartedAt: Number(match[2]) };
}
