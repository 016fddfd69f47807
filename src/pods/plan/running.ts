import { containerHash } from "../../model/container-hash.ts";
import type { Container } from "../../model/generated/types.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import { act, inOrder, type PlanContext, type PlanPart, type RunningContainer } from "./context.ts";
import { crashOf, crashWait } from "./crash-backoff.ts";
import { graceFor } from "./grace.ts";
import type { ContainerStart } from "./pod-plan.ts";
import { planResize } from "./resize.ts";
import { planStart } from "./start.ts";

/** What is done to a running container; `alive` is false if it is killed for good. */
export interface RunningPlan extends PlanPart {
  readonly alive: boolean;
}

/** Replaces a container whose definition changed, kills one whose probe failed, resizes one in place. */
export function planRunning(context: PlanContext, of: RunningContainer): RunningPlan {
  const { container, running, kind } = of;
  if (running.hash === containerHash(container)) return planProbed(context, of);
  const why = killReason(of, "definition changed");
  return {
    ...inOrder(
      act({ do: "killContainer", container: running, why, replace: true }),
      planStart(context, container, kind),
    ),
    alive: true,
  };
}

/** A container whose startup or liveness probe failed is killed, and restarted unless its policy is Never. */
function planProbed(context: PlanContext, of: RunningContainer): RunningPlan {
  const { container, running, kind } = of;
  const failed = failedProbe(context, container, running);
  if (failed === undefined) return { ...planResize(context, of), alive: true };
  const { graceSeconds } = failed;
  if ((container.restartPolicy ?? context.pod.spec.restartPolicy) === "Never") {
    const why = `Container ${container.name} ${failed.what}`;
    return { ...act({ do: "killContainer", container: running, why, graceSeconds }), alive: false };
  }
  // The crash history before this instance decides: the first kill restarts at once, a row of them waits.
  const { observed, memory, now } = context;
  const before = observed.containers.find(({ name, state }) => name === container.name && state === "exited");
  const crash = crashOf(memory.crashes, container);
  const replace = before === undefined || crashWait(crash, before.finishedAt, now.wall) <= 0;
  const why = killReason(of, failed.what);
  const kill = act({ do: "killContainer", container: running, why, replace, graceSeconds });
  if (!replace) return { ...kill, alive: true };
  const start: ContainerStart = { name: container.name, kind, attempt: running.attempt + 1 };
  const previousEnd = before === undefined ? {} : { previousEnd: before.finishedAt };
  return { ...inOrder(kill, act({ do: "startContainer", start: { ...start, ...previousEnd } })), alive: true };
}

/** The message of the event Killing, in the words of Kubernetes, which has shorter ones for init containers. */
function killReason({ container, kind }: RunningContainer, what: string): string {
  if (kind === "init") return `Init container ${container.name} ${what}`;
  return `Container ${container.name} ${what}, will be restarted`;
}

function failedProbe(
  { pod, probes }: PlanContext,
  container: Container,
  running: ObservedContainer,
): { what: string; graceSeconds: number | undefined } | undefined {
  const results = probes.get(container.name);
  if (results?.containerId !== running.id) return undefined;
  for (const kind of ["liveness", "startup"] as const) {
    if (results[kind] !== "failure") continue;
    const probe = kind === "liveness" ? container.livenessProbe : container.startupProbe;
    return {
      what: `failed ${kind} probe`,
      // Only where it is not the pod's own.
      graceSeconds: probe?.terminationGracePeriodSeconds === undefined ? undefined : graceFor(pod, { probe }),
    };
  }
  return undefined;
}
