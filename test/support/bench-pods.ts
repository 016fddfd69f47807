import { PODS } from "../../src/adapters/kubeapi/index.ts";
import type { Pod, PodStatus } from "../../src/model/generated/types.ts";
import type { ControllerBench } from "./controllers.ts";

const ROUNDS = 30;

/**
 * Does what an agent would until nothing is left to do: pods that are chosen run and are ready, pods that are being
 * deleted go.
 */
export async function runPods(bench: ControllerBench, isChosen: (pod: Pod) => boolean = () => true): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    await bench.settle();
    let changed = 0;
    for (const pod of await podsOf(bench)) {
      const { namespace = "", name = "", deletionTimestamp } = pod.metadata;
      if (deletionTimestamp !== undefined) {
        if ((pod.metadata.finalizers ?? []).length > 0 && pod.metadata.deletionGracePeriodSeconds === 0) continue;
        await bench.api.delete(PODS, { namespace, name, graceSeconds: 0 }, bench.signal);
        changed++;
      } else if (pod.status?.phase === "Pending" && isChosen(pod)) {
        await setPodStatus(bench, pod, runningStatus(bench));
        changed++;
      }
    }
    if (changed === 0) return;
  }
  throw new Error("pods keep changing");
}

/** Gives a pod a status, and lets everything happen that follows. */
export async function setPodStatus(bench: ControllerBench, pod: Pod, status: PodStatus): Promise<void> {
  const { namespace = "", name = "" } = pod.metadata;
  const change = { namespace, name, type: "strategic", subresource: "status", body: { status } } as const;
  await bench.api.patch(PODS, change, bench.signal);
  await bench.settle();
}

function runningStatus({ clock }: ControllerBench): PodStatus {
  const lastTransitionTime = `${new Date(clock.now().wall).toISOString().slice(0, 19)}Z`;
  return { phase: "Running", conditions: [{ type: "Ready", status: "True", lastTransitionTime }] };
}

/** Pods of a namespace, by name. */
export async function podsOf(bench: ControllerBench, namespace = "default"): Promise<readonly Pod[]> {
  return (await bench.api.list(PODS, { namespace }, bench.signal)).items;
}
