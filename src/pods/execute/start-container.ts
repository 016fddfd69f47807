import { RuntimeError, type RuntimeImage } from "../../adapters/runtime/port.ts";
import { isAborted } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Container } from "../../model/generated/types.ts";
import { logLinkName } from "../../model/names.ts";
import { containersOf, podIdentity } from "../../model/pod-facts.ts";
import { StartError } from "../../model/start-error.ts";
import { ConfigError } from "../config/config-error.ts";
import { containerConfig } from "../config/container-config.ts";
import { podLogDir } from "../config/paths.ts";
import type { CrashState } from "../plan/crash-backoff.ts";
import { graceFor } from "../plan/grace.ts";
import type { ContainerStart } from "../plan/pod-plan.ts";
import { type ExecuteDeps, type PodRun, podIps } from "./context.ts";
import type { ContainerCreation, MergedContribution } from "./contributors/contributor.ts";
import { writeHostsFile } from "./contributors/hosts-file-mount.ts";
import { containerContributors } from "./contributors/list.ts";
import { collectContributions } from "./contributors/merge.ts";
import { pullImageVolumes } from "./contributors/volumes.ts";
import { describeSandbox, pullSandbox } from "./create-sandbox.ts";
import { hookTarget, runHook } from "./hooks.ts";
import { killContainer } from "./kill.ts";

/** Milliseconds after which other pods may start while this one waits for a device plugin or the like. */
const SLOW_MS = 1000;
/** Retry delays of a failed create or start, in milliseconds. */
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
  const onWait = (text: string | undefined): void => run.onPullWait(container.name, text);
  const request = { pod: run.pod, container, journal, slot: run.slot, onWait, ...pullSandbox(deps, run) };
  const [found, files] = await Promise.allSettled([
    run.earlyPull?.take(container) ?? deps.images.ensure(request, { signal: run.interrupt }),
    prepareFiles(deps, run, container),
  ]);
  if (found.status === "rejected") throw found.reason;
  const { ref, image } = found.value;
  const imageVolumes = await pullImageVolumes(deps, run, container);
  await run.slot.hold(run.interrupt);
  const attempt = start.attempt ?? (await attemptFromLogs(deps, run, container));
  const id = await create(deps, run, { container, attempt, ref, image, imageVolumes, files, crash: start.crash });
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

/** Runs the postStart hook; if it fails the container is killed. Other pods may start meanwhile. */
async function postStart(deps: ExecuteDeps, run: PodRun, of: { container: Container; id: string }): Promise<void> {
  const { container, id } = of;
  const handler = container.lifecycle?.postStart;
  if (handler === undefined) return;
  run.slot.release();
  const step = run.journal.begin("hook", { container: container.name, detail: "postStart" });
  try {
    const podIp = podIps(deps, run.pod, run.sandbox?.ips ?? [])[0] ?? "";
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
    await killStarted(deps, { ...run, podIp: podIps(deps, run.pod, run.sandbox?.ips ?? [])[0] ?? "" }, { id, name });
    throw new StartError(
      "PostStartHookError",
      { afterMs: SHORT_RETRY_MS },
      { message: messageOf(error), cause: error },
    );
  }
}

/** Kills a container whose postStart hook failed, with its preStop hook, as in Kubernetes. Rejects only if interrupted. */
async function killStarted(deps: ExecuteDeps, run: PodRun, { id, name }: { id: string; name: string }): Promise<void> {
  const container = { id, name, state: "running", annotations: {} } as const;
  const kill = { container, why: "FailedPostStartHook", graceSeconds: graceFor(run.pod) };
  try {
    await killContainer(deps, run, kill);
  } catch (error) {
    if (run.interrupt.aborted) throw error;
    deps.log.warn("Failed to kill container after failed postStart hook", { container: name, error: messageOf(error) });
  }
}

/** Returns the container of the pod that is to be started. */
export function containerOf(run: PodRun, start: ContainerStart): Container {
  const found = containersOf(run.pod, start.kind).find((container) => container.name === start.name);
  if (found === undefined) throw new Error(`start container ${start.name}: not in the pod`);
  return found;
}

type Creation = {
  container: Container;
  attempt: number;
  ref: string;
  image: RuntimeImage;
  imageVolumes: ReadonlyMap<string, string>;
  files: PromiseSettledResult<unknown>;
  crash: CrashState | undefined;
};

async function create(deps: ExecuteDeps, run: PodRun, creation: Creation): Promise<string> {
  const { container, attempt, image, imageVolumes, crash } = creation;
  const { sandbox, pod, journal, interrupt, finish } = run;
  if (sandbox === undefined) throw new Error(`create container ${container.name}: the pod has no sandbox`);
  const step = journal.begin("create", { container: container.name });
  try {
    if (creation.files.status === "rejected") throw creation.files.reason;
    const { env, users, ...contributed } = await contributions(deps, run, {
      pod,
      container,
      attempt,
      imageVolumes,
      crash,
      interrupt,
      finish,
      sandboxIps: sandbox.ips,
    });
    const config = containerConfig(pod, container, {
      ...contributed,
      ...targetOf(run, container),
      attempt,
      image,
      imageRef: creation.ref,
      envs: env,
      ...(users && { users }),
      seccompDefault: deps.node.seccompDefault,
      seccompRoot: `${deps.node.paths.rootDir}/seccomp`,
      extraMaskedPaths: deps.node.extraMaskedPaths,
      volumeGroups: deps.volumes.groups(pod),
    });
    const request = { sandboxId: sandbox.id, config, sandbox: await describeSandbox(deps, run, sandbox.attempt) };
    const id = await deps.runtime.createContainer(request, { signal: finish });
    step.done();
    return id;
  } catch (error) {
    if (isAborted(error, interrupt)) {
      step.abort();
      throw error;
    }
    step.fail(error);
    const reason = error instanceof ConfigError ? "CreateContainerConfigError" : "CreateContainerError";
    throw failed(run, container, { reason, error });
  }
}

/** Gathers what is added to the container. What takes long, such as the answer of a device plugin, delays no other pod. */
async function contributions(deps: ExecuteDeps, run: PodRun, creation: ContainerCreation): Promise<MergedContribution> {
  const slow = deps.clock.after(SLOW_MS, () => run.slot.release());
  const merged = await collectContributions(containerContributors(deps), creation).finally(() => slow.cancel());
  await run.slot.hold(run.interrupt);
  return merged;
}

/** Makes what is the same for each instance of a container: the directory of its logs and the pod's /etc/hosts. */
async function prepareFiles(deps: ExecuteDeps, { pod, sandbox }: PodRun, container: Container): Promise<void> {
  await Promise.all([
    deps.files.makeDir(`${podLogDir(deps.node.paths, podIdentity(pod))}/${container.name}`, 0o755),
    writeHostsFile(deps, pod, { container, sandboxIps: sandbox?.ips ?? [] }),
  ]);
}

/** The container whose process namespace an ephemeral container joins. */
function targetOf(run: PodRun, { name }: Container): { targetId?: string } {
  const target = (run.pod.spec.ephemeralContainers ?? []).find((one) => one.name === name)?.targetContainerName;
  if (target === undefined || target === "") return {};
  const targetId = run.ids.get(target);
  if (targetId === undefined) throw new ConfigError(`unable to find target container ${target}`);
  return { targetId };
}

function failed(run: PodRun, container: Container, what: { reason: string; error: unknown }): StartError {
  const text = messageOf(what.error);
  run.journal.event("Warning", "Failed", { message: `Error: ${text}`, container: container.name });
  // An unavailable runtime is not the container's fault: the start is retried as soon as it is back.
  const isUnavailable = what.error instanceof RuntimeError && what.error.code === "Unavailable";
  // A failed start leaves an exited container, whose crash back-off decides; this only keeps it from spinning.
  const isShort = isUnavailable || what.reason === "RunContainerError";
  const retry = { afterMs: isShort ? SHORT_RETRY_MS : RETRY_MS };
  return new StartError(what.reason, retry, { message: text, cause: what.error });
}

/** Replaces the container's id in the runtime's error by its name, which a reader knows. */
function named(error: unknown, id: string, name: string): unknown {
  if (!(error instanceof RuntimeError)) return error;
  return new RuntimeError(error.code, error.message.replaceAll(id, name), { cause: error });
}

/** Counts from the log files if no container is left that tells how often it was started: one more than the highest. */
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
    deps.log.warn("Failed to create log link", { link, error: messageOf(error) });
  }
}
