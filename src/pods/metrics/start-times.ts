import type { Pod, PodStatus, Volume } from "../../model/generated/types.ts";
import type { PodStep } from "../../model/step.ts";

/** Volumes that a node makes by itself; a pod with others waits for storage, and is left out of the promise. */
const LOCAL_VOLUMES = new Set(["configMap", "secret", "downwardAPI", "emptyDir", "projected", "hostPath", "gitRepo"]);

export interface StartTimes {
  /** From the pod's creation until all its containers ran, in milliseconds. */
  readonly totalMs: number;
  /** The same without pulls and init containers, which no node can promise; undefined for a pod that waits for storage. */
  readonly sliMs?: number;
}

/** How long the start of a pod took. Undefined for a pod that has no time of creation: it is static. Pure. */
export function startTimes(
  pod: Pod,
  { status, steps, now }: { readonly status: PodStatus; readonly steps: readonly PodStep[]; readonly now: number },
): StartTimes | undefined {
  const created = Date.parse(pod.metadata.creationTimestamp ?? "");
  if (Number.isNaN(created)) return undefined;
  const totalMs = Math.max(0, now - created);
  if ((pod.spec.volumes ?? []).some(needsStorage)) return { totalMs };
  const pulls = steps
    .filter(({ step, until }) => step === "pull" && until !== undefined)
    .map(({ since, until = since }) => [since, until] as const);
  const inits = (status.initContainerStatuses ?? []).flatMap(({ state }) => {
    const { startedAt = "", finishedAt = "" } = state?.terminated ?? {};
    return startedAt === "" || finishedAt === "" ? [] : [[Date.parse(startedAt), Date.parse(finishedAt)] as const];
  });
  return { totalMs, sliMs: Math.max(0, totalMs - covered([...pulls, ...inits])) };
}

function needsStorage(volume: Volume): boolean {
  return !Object.keys(volume).some((kind) => LOCAL_VOLUMES.has(kind));
}

/** The time that at least one of the spans covers: what goes on at once counts once. */
function covered(spans: readonly (readonly [number, number])[]): number {
  let sum = 0;
  let reached = Number.NEGATIVE_INFINITY;
  for (const [since, until] of [...spans].sort(([a], [b]) => a - b)) {
    const from = Math.max(since, reached);
    if (until > from) sum += until - from;
    reached = Math.max(reached, until);
  }
  return sum;
}

/** True once every regular container runs. Pure. */
export function areAllRunning({ spec }: Pod, { containerStatuses = [] }: PodStatus): boolean {
  return spec.containers.every(({ name }) =>
    containerStatuses.some((one) => one.name === name && one.state?.running !== undefined),
  );
}
