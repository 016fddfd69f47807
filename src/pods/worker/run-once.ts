import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { PodExplanation } from "../../model/step.ts";

/** The outcome of one pod. */
export interface OnceResult {
  readonly namespace: string;
  readonly name: string;
  readonly ok: boolean;
  /** `running`, `succeeded`, or why it failed. */
  readonly outcome: string;
}

export interface RunOnceDeps {
  readonly clock: Clock;
  /** True once every source has delivered its list. */
  sourcesReady(): boolean;
  pods(): readonly PodExplanation[];
  onChange(fn: () => void, options: Abortable): void;
}

export interface RunOnceOptions {
  /** A pod that neither runs nor has completed after this long has failed. */
  readonly limitMs: number;
  /** A step that failed more often than this, or a container that was restarted more often, has failed for good. */
  readonly retries: number;
}

const RUNNING = "running";
/** A program that exits right after its start runs for a moment, too: it counts once it has run this long. */
const STEADY_MS = 500;

/** Waits until each pod runs, has completed or has failed; the pods go on as they are. Rejects only on abort. */
export async function runOnce(
  deps: RunOnceDeps,
  options: RunOnceOptions,
  { signal }: Abortable,
): Promise<OnceResult[]> {
  const { clock } = deps;
  const deadline = clock.now().mono + options.limitMs;
  let last = { verdict: "", since: 0 };
  for (;;) {
    const left = deadline - clock.now().mono;
    const judged = deps
      .pods()
      .map((pod) => judge(pod, options.retries) ?? (left <= 0 ? late(pod, options) : undefined));
    if (deps.sourcesReady() && judged.every((result) => result !== undefined)) {
      const verdict = JSON.stringify(judged);
      if (verdict !== last.verdict) last = { verdict, since: clock.now().mono };
      const openMs = last.since + STEADY_MS - clock.now().mono;
      if (openMs <= 0 || left <= 0 || !judged.some(({ outcome }) => outcome === RUNNING)) return judged;
      await changed(deps, Math.min(openMs, left), signal);
      continue;
    }
    if (left <= 0 && !deps.sourcesReady()) {
      return [{ namespace: "", name: "sources", ok: false, outcome: "a source has not delivered its pods in time" }];
    }
    await changed(deps, Math.max(1, left), signal);
  }
}

/** Returns the verdict on one pod, or undefined while it is open. Pure. */
export function judge(pod: PodExplanation, retries: number): OnceResult | undefined {
  const { namespace, name, phase } = pod;
  const say = (ok: boolean, outcome: string): OnceResult => ({ namespace, name, ok, outcome });
  if (phase === "Succeeded") return say(true, "succeeded");
  if (phase === "Failed") return say(false, startError(pod) ?? exitWords(pod) ?? pod.state);
  if (phase === "Running" && pod.readyContainers === pod.totalContainers) return say(true, RUNNING);
  const stubborn = pod.errors.find((error) => error.count > retries);
  if (stubborn !== undefined) return say(false, `${stubborn.step} failed ${stubborn.count} times: ${stubborn.message}`);
  const crashed = pod.containers.find((container) => container.restarts >= retries && container.state !== "running");
  if (crashed !== undefined) return say(false, `${crashed.name} crashed ${crashed.restarts + 1} times`);
  return undefined;
}

/** The last error of the start; what fails afterwards, while the pod is stopped, does not explain it. */
function startError({ errors }: PodExplanation): string | undefined {
  return errors.findLast(({ step }) => step !== "kill" && step !== "terminate" && step !== "remove")?.message;
}

function late(pod: PodExplanation, { limitMs }: RunOnceOptions): OnceResult {
  const doing = pod.step === undefined ? pod.state : `${pod.step.step}: ${pod.step.detail || pod.state}`;
  const outcome = `not running after ${limitMs / 1000}s (${doing})`;
  return { namespace: pod.namespace, name: pod.name, ok: false, outcome };
}

function exitWords(pod: PodExplanation): string | undefined {
  const failed = pod.containers.find((container) => (container.exitCode ?? 0) !== 0);
  return failed && `${failed.name} exited with code ${failed.exitCode}${failed.message && `: ${failed.message}`}`;
}

function changed(deps: RunOnceDeps, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const listening = new AbortController();
    const end = (settle: () => void) => (): void => {
      timer.cancel();
      signal.removeEventListener("abort", onAbort);
      listening.abort();
      settle();
    };
    const onAbort = end(() => reject(signal.reason as Error));
    const timer = deps.clock.after(ms, end(resolve));
    signal.addEventListener("abort", onAbort, { once: true });
    deps.onChange(end(resolve), { signal: listening.signal });
  });
}
