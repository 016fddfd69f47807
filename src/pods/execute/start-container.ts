import { RuntimeError } from "../../adapters/runtime/port.ts";
import { messageOf } from "../../lib/errors.ts";
import { type EnvFiles, envFileKey, envFileReferences, MOST_ENV_FILE_BYTES } from "../../model/env-file.ts";
import { type EnvObjects, envReferences, readEnvObjects } from "../../model/env-objects.ts";
import type { Container } from "../../model/generated/types.ts";
import { logLinkName } from "../../model/names.ts";
import { containersOf, podIdentity } from "../../model/pod-facts.ts";
import { orderPodIps } from "../../model/pod-ips.ts";
import { StartError } from "../../model/start-error.ts";
import { ConfigError } from "../config/config-error.ts";
import { containerConfig } from "../config/container-config.ts";
import { podLogDir } from "../config/paths.ts";
import type { CrashState } from "../plan/crash-backoff.ts";
import type { ContainerStart } from "../plan/pod-plan.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";
import { describeSandbox, pullSandbox } from "./create-sandbox.ts";
import { containerDevices } from "./devices.ts";
import { runHook } from "./hooks.ts";
import { hookTarget } from "./kill.ts";
import { containerMounts, type ImageVolumes, makePlaces, pullImageVolumes } from "./mounts.ts";
import { userMapping } from "./user-namespace.ts";

/** How long a failed create or start waits before it is tried again. */
const RETRY_MS = 10_000;
const SHORT_RETRY_MS = 1000;

/**
 * Image, create, start. Rejects with a `StartError` that says what is shown and when to try again.
 * Only the pull can be interrupted; the worker undoes a container that came up too late.
 */
export async function startContainer(deps: ExecuteDeps, run: PodRun, start: ContainerStart): Promise<string> {
  const container = containerOf(run, start);
  const { journal } = run;
  if (start.replaces !== undefined) await deps.runtime.removeContainer(start.replaces, { signal: run.finish });
  const request = { pod: run.pod, container, journal, slot: run.slot, ...pullSandbox(deps, run) };
  const [found, places] = await Promise.allSettled([
    deps.images.ensure(request, { signal: run.interrupt }),
    makePlaces(deps, run, container),
  ]);
  if (found.status === "rejected") throw found.reason;
  const { ref, image } = found.value;
  const imageVolumes = await pullImageVolumes(deps, run, container);
  await run.slot.hold(run.interrupt);
  const attempt = start.attempt ?? (await attemptFromLogs(deps, run, container));
  const id = await create(deps, run, { container, attempt, ref, image, imageVolumes, places, crash: start.crash });
  journal.event("Normal", "Created", { message: `Container created`, container: container.name });
  const step = journal.begin("start", { container: container.name });
  try {
    // The link is there when the container begins to write.
    const linked = linkLog(deps, run, { container, attempt, id });
    await deps.runtime.startContainer(id, { signal: run.finish });
    await linked;
  } catch (error) {
    step.fail(error);
    throw failed(run, container, { reason: "RunContainerError", error: named(error, id, container.name) });
  }
  step.done(attempt === 0 ? "" : `restart ${attempt}`);
  journal.event("Normal", "Started", { message: `Container started`, container: container.name });
  await postStart(deps, run, { container, id });
  return id;
}

/** Runs the postStart hook; its failure is the end of the container (9). Others may start meanwhile. */
async function postStart(deps: ExecuteDeps, run: PodRun, of: { container: Container; id: string }): Promise<void> {
  const { container, id } = of;
  const handler = container.lifecycle?.postStart;
  if (handler === undefined) return;
  run.slot.release();
  const step = run.journal.begin("hook", { container: container.name, detail: "postStart" });
  try {
    const podIp = podIps(deps, run)[0] ?? "";
    await runHook(deps, { handler, target: hookTarget({ ...run, podIp }, container, id) }, { signal: run.interrupt });
    step.done("postStart");
  } catch (error) {
    if (run.interrupt.aborted) {
      step.abort();
      throw error;
    }
    step.fail(error);
    const name = container.name;
    run.journal.event("Warning", "FailedPostStartHook", { message: "PostStartHook failed", container: name });
    run.journal.event("Normal", "Killing", { message: "FailedPostStartHook", container: name });
    const grace = run.pod.spec.terminationGracePeriodSeconds ?? 30;
    await deps.runtime.stopContainer(id, Math.max(2, grace), { signal: run.interrupt });
    throw new StartError(
      "PostStartHookError",
      { afterMs: SHORT_RETRY_MS },
      { message: messageOf(error), cause: error },
    );
  }
}

function containerOf(run: PodRun, start: ContainerStart): Container {
  const found = containersOf(run.pod, start.kind).find((container) => container.name === start.name);
  if (found === undefined) throw new Error(`the plan starts ${start.name}, which the pod does not have`);
  return found;
}

type Making = {
  container: Container;
  attempt: number;
  ref: string;
  image: Parameters<typeof containerConfig>[2]["image"];
  imageVolumes: ImageVolumes;
  places: PromiseSettledResult<void>;
  crash: CrashState | undefined;
};

async function create(deps: ExecuteDeps, run: PodRun, making: Making): Promise<string> {
  const { container, attempt } = making;
  const { sandbox, pod, journal } = run;
  if (sandbox === undefined) throw new Error("a container was to be started without a sandbox");
  const step = journal.begin("create", { container: container.name });
  try {
    if (making.places.status === "rejected") throw making.places.reason;
    const environment = {
      ...{ podIps: podIps(deps, run), hostIps: deps.node.hostIps, allocatable: deps.node.allocatable() },
      objects: await envObjects(deps, run, container),
      files: await envFiles(deps, run, container),
      services: await serviceVariables(deps, run),
    };
    const users = await userMapping(deps, run);
    const mounts = await containerMounts(deps, run, { container, environment, imageVolumes: making.imageVolumes });
    const config = containerConfig(pod, container, {
      ...environment,
      ...{ attempt, image: making.image, imageRef: making.ref, ...(making.crash && { crash: making.crash }) },
      ...{ limits: deps.node.limits(), seccompDefault: deps.node.seccompDefault, ...targetOf(run, container) },
      extraMaskedPaths: deps.node.extraMaskedPaths,
      seccompRoot: `${deps.node.paths.rootDir}/seccomp`,
      ...(users && { users }),
      devices: containerDevices(deps, run, container),
      mounts: users === undefined ? mounts : mounts.map((mount) => ({ ...mount, users })),
    });
    const request = { sandboxId: sandbox.id, config, sandbox: await describeSandbox(deps, run, sandbox.attempt) };
    const id = await deps.runtime.createContainer(request, { signal: run.finish });
    step.done();
    return id;
  } catch (error) {
    step.fail(error);
    const reason = error instanceof ConfigError ? "CreateContainerConfigError" : "CreateContainerError";
    throw failed(run, container, { reason, error });
  }
}

/** The container whose processes an ephemeral container asks to see. */
function targetOf(run: PodRun, { name }: Container): { targetId?: string } {
  const target = (run.pod.spec.ephemeralContainers ?? []).find((one) => one.name === name)?.targetContainerName;
  if (target === undefined || target === "") return {};
  const targetId = run.ids.get(target);
  if (targetId === undefined) throw new ConfigError(`unable to find target container ${target}`);
  return { targetId };
}

/** The objects that variables come from; not being able to read them is a problem of the configuration, as in Kubernetes. */
async function envObjects(deps: ExecuteDeps, run: PodRun, container: Container): Promise<EnvObjects> {
  const refs = envReferences(container, podIdentity(run.pod).namespace);
  try {
    return await readEnvObjects(deps.objects, refs, { signal: run.finish });
  } catch (error) {
    throw new ConfigError(messageOf(error), { cause: error });
  }
}

/** Only an emptyDir can hold them, as in Kubernetes: an init container or a sidecar wrote it. */
async function envFiles(deps: ExecuteDeps, run: PodRun, container: Container): Promise<EnvFiles> {
  const files = new Map<string, string>();
  for (const ref of envFileReferences(container)) {
    const volume = run.pod.spec.volumes?.find(({ name }) => name === ref.volumeName);
    const source = volume?.emptyDir === undefined ? undefined : deps.volumes.source(run.pod, ref.volumeName);
    if (source?.kind !== "path") throw new ConfigError(`volume "${ref.volumeName}" of an env file is no emptyDir`);
    try {
      const text = await deps.files.readInside(source.path, ref.path, MOST_ENV_FILE_BYTES);
      if (text !== undefined) files.set(envFileKey(ref), text);
    } catch (error) {
      throw new ConfigError(`env file of volume "${ref.volumeName}": ${messageOf(error)}`, { cause: error });
    }
  }
  return files;
}

async function serviceVariables(deps: ExecuteDeps, run: PodRun): Promise<ReadonlyMap<string, string>> {
  try {
    return (await deps.cluster?.serviceVariables(run.pod, { signal: run.finish })) ?? new Map();
  } catch (error) {
    throw new ConfigError(messageOf(error), { cause: error });
  }
}

function podIps(deps: ExecuteDeps, run: PodRun): readonly string[] {
  const { hostIps } = deps.node;
  return run.pod.spec.hostNetwork === true ? hostIps : orderPodIps(run.sandbox?.ips ?? [], hostIps);
}

function failed(run: PodRun, container: Container, what: { reason: string; error: unknown }): StartError {
  const text = messageOf(what.error);
  run.journal.event("Warning", "Failed", { message: `Error: ${text}`, container: container.name });
  // A runtime that went away is not the container's fault: it is tried again as soon as it is back.
  const away = what.error instanceof RuntimeError && what.error.code === "Unavailable";
  // A failed start leaves an ended container behind, whose crash back-off decides; this only keeps it from spinning.
  const short = away || what.reason === "RunContainerError";
  const retry = { afterMs: short ? SHORT_RETRY_MS : RETRY_MS };
  return new StartError(what.reason, retry, { message: text, cause: what.error });
}

/** The runtime names the container by its id, which means nothing to a reader. */
function named(error: unknown, id: string, name: string): unknown {
  if (!(error instanceof RuntimeError)) return error;
  return new RuntimeError(error.code, error.message.replaceAll(id, name), { cause: error });
}

/** With no container left to tell, the log files know how often it was started: one more than the highest (8). */
async function attemptFromLogs(deps: ExecuteDeps, run: PodRun, container: Container): Promise<number> {
  const directory = `${podLogDir(deps.node.paths, podIdentity(run.pod))}/${container.name}`;
  const names = await deps.files.list(directory);
  const numbers = names.map((name) => /^(\d+)\.log/.exec(name)?.[1]).filter((text) => text !== undefined);
  return numbers.length === 0 ? 0 : Math.max(...numbers.map(Number)) + 1;
}

/** Never rejects. */
async function linkLog(
  deps: ExecuteDeps,
  run: PodRun,
  of: { container: Container; attempt: number; id: string },
): Promise<void> {
  const { name, namespace } = podIdentity(run.pod);
  const target = `${podLogDir(deps.node.paths, podIdentity(run.pod))}/${of.container.name}/${of.attempt}.log`;
  const link = logLinkName({ pod: name, namespace, container: of.container.name, containerId: of.id });
  try {
    await deps.files.symlink(target, `${deps.node.paths.containerLogsDir}/${link}`);
  } catch (error) {
    // The link is a convenience for log shippers: a full disk must not fail the container.
    deps.log.warn("the log link could not be made", { link, error: messageOf(error) });
  }
}
