import type { Container, LifecycleHandler } from "../../model/generated/types.ts";
import { CONTAINER_PORTS_ANNOTATION, PRE_STOP_HANDLER_ANNOTATION } from "../../model/labels.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import { allContainers } from "../../model/pod-facts.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";
import { hookTarget, runHook } from "./hooks.ts";
import { PreStopHook } from "./pre-stop-hooks.ts";

/** Runs the preStop hook of a container that is killed, at most for its grace period; answers the whole seconds it took. */
export async function preStop(
  deps: ExecuteDeps,
  run: PodRun,
  kill: { container: Pick<ObservedContainer, "id" | "name" | "state" | "annotations">; graceSeconds: number },
): Promise<number> {
  const { container, graceSeconds } = kill;
  const { id, name } = container;
  const spec = allContainers(run.pod).find((one) => one.name === name) ?? recordedSpec(container);
  const handler = spec.lifecycle?.preStop;
  if (handler === undefined || container.state !== "running" || graceSeconds <= 0) return 0;
  const began = deps.clock.now().mono;
  const target = hookTarget(run, spec, id);
  const of = { container: name, journal: run.journal, clock: deps.clock };
  const hook = run.preStops.begin(
    id,
    () => new PreStopHook(of, (options) => runHook(deps, { handler, target }, options), run.finish),
  );
  await hook.wait(graceSeconds, { signal: run.interrupt });
  return Math.floor((deps.clock.now().mono - began) / 1000);
}

/** What a kubelet recorded on the container of an orphaned pod: its preStop hook and the ports that this may name. */
function recordedSpec({ name, annotations }: Pick<ObservedContainer, "name" | "annotations">): Container {
  const preStop = parse<LifecycleHandler>(annotations[PRE_STOP_HANDLER_ANNOTATION]);
  const ports = parse<Container["ports"]>(annotations[CONTAINER_PORTS_ANNOTATION]);
  return { name, ...(preStop && { lifecycle: { preStop } }), ...(Array.isArray(ports) && { ports }) };
}

function parse<T>(text: string | undefined): T | undefined {
  if (text === undefined) return undefined;
  try {
    return (JSON.parse(text) as T | null) ?? undefined; // reason: a kubelet wrote it from the spec
  } catch {
    return undefined;
  }
}
