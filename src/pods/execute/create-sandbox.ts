import type { SandboxConfig } from "../../adapters/runtime/port.ts";
import { messageOf } from "../../lib/errors.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import { podDns } from "../config/dns.ts";
import { podLogDir } from "../config/paths.ts";
import { sandboxConfig } from "../config/sandbox-config.ts";
import type { OpenStep } from "../journal.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";
import { runtimeHandlerOf } from "./runtime-handler.ts";
import { requireUserNamespaces, userMapping } from "./user-namespace.ts";

/** Returns the sandbox configuration of this attempt; containers are created with the same one. */
export async function describeSandbox(
  deps: ExecuteDeps,
  run: Pick<PodRun, "pod" | "journal">,
  attempt: number,
): Promise<SandboxConfig> {
  const facts = deps.node.dns();
  const dns = podDns(run.pod, facts);
  for (const { reason, message } of dns.warnings) run.journal.event("Warning", reason, message);
  return sandboxConfig(run.pod, {
    attempt,
    paths: deps.node.paths,
    dns: { servers: dns.servers, searches: dns.searches, options: dns.options },
    cgroupParent: deps.cgroups.parentOf(run.pod),
    limits: deps.node.limits(),
    users: await userMapping(deps, run.pod),
    clusterDomain: facts.clusterDomain,
    volumeGroups: deps.volumes.groups(run.pod),
    ...(deps.node.owner === undefined ? {} : { owner: deps.node.owner }),
  });
}

/** Returns what the image calls for this pod tell the runtime about its sandbox. */
export function pullSandbox(
  deps: ExecuteDeps,
  run: PodRun,
): { sandbox?: () => Promise<SandboxConfig>; runtimeHandler: () => Promise<string> } {
  const { sandbox, pod, interrupt } = run;
  const runtimeHandler = (): Promise<string> => runtimeHandlerOf(deps, pod, { signal: interrupt });
  if (sandbox === undefined) return { runtimeHandler };
  return { runtimeHandler, sandbox: () => describeSandbox(deps, run, sandbox.attempt) };
}

/** Creates the pod's sandbox with its network. Passes the start lane; an interrupt waits until it is created. */
export async function createSandbox(deps: ExecuteDeps, run: PodRun, attempt: number): Promise<void> {
  const { pod, journal } = run;
  const identity = podIdentity(pod);
  run.earlyPull?.begin(attempt);
  await enterLane(run);
  const step = journal.begin("sandbox", { detail: attempt === 0 ? "" : `attempt ${attempt}` });
  let created: string | undefined;
  try {
    const logDir = deps.files.makeDir(podLogDir(deps.node.paths, identity), 0o755);
    await Promise.all([ensureCgroup(deps, run), logDir]);
    const handler = await runtimeHandlerOf(deps, pod, { signal: run.interrupt });
    await requireUserNamespaces(deps, run, handler);
    const config = await describeSandbox(deps, run, attempt);
    const id = await deps.runtime.runSandbox(config, handler, { signal: run.finish });
    created = id;
    const status = await deps.runtime.sandboxStatus(id, { signal: run.finish });
    const ips = pod.spec.hostNetwork === true ? [] : status.ips;
    run.sandbox = { id, attempt, ips };
    step.done(pod.spec.hostNetwork === true ? "on the host's network" : `IP ${ips.join(", ") || "none"}`);
  } catch (error) {
    step.fail(error);
    const text = messageOf(error);
    if (created === undefined) {
      journal.event("Warning", "FailedCreatePodSandBox", `Failed to create pod sandbox: ${text}`);
    } else journal.event("Warning", "FailedPodSandBoxStatus", `Unable to get pod sandbox status: ${text}`);
    throw error;
  }
}

/** Everything of the pod goes below its cgroup, so that is made first. */
async function ensureCgroup(deps: ExecuteDeps, run: PodRun): Promise<void> {
  try {
    await deps.cgroups.ensure(run.pod);
  } catch (error) {
    const message = `unable to ensure pod container exists: ${messageOf(error)}`;
    run.journal.event("Warning", "FailedCreatePodContainer", message);
    throw error;
  }
}

/** Waits for the pod's turn to start; one that comes at once leaves no step in the journal. */
async function enterLane(run: PodRun): Promise<void> {
  let queued: OpenStep | undefined;
  try {
    await run.slot.hold(run.interrupt, (position) => {
      if (position === 0) return;
      const detail = `for its turn to start, position ${position}`;
      if (queued === undefined) queued = run.journal.begin("waiting", { detail });
      else queued.detail(detail);
    });
    queued?.done("for its turn to start");
  } catch (error) {
    queued?.abort();
    throw error;
  }
}
