import { randomBytes } from "node:crypto";
import type { ContainerMount } from "../../adapters/runtime/port.ts";
import { messageOf } from "../../lib/errors.ts";
import { ConfigError } from "../../model/config-error.ts";
import { expandEnv } from "../../model/env-expand.ts";
import type { Container, VolumeMount } from "../../model/generated/types.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import { type EnvironmentFacts, environment } from "../config/environment.ts";
import { hostsFile } from "../config/hosts-file.ts";
import { podDir, podLogDir } from "../config/paths.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";
import { pullSandbox } from "./create-sandbox.ts";

/** References of the images that are mounted as volumes, by volume. */
export type ImageVolumes = ReadonlyMap<string, string>;

interface Mounting {
  readonly container: Container;
  readonly environment: EnvironmentFacts;
  readonly imageVolumes: ImageVolumes;
}

/** Every mount of a container: its volumes, /etc/hosts and the termination log (8.5), whose file is made here. */
export async function containerMounts(deps: ExecuteDeps, run: PodRun, mounting: Mounting): Promise<ContainerMount[]> {
  const { pod } = run;
  const { container } = mounting;
  const base = podDir(deps.node.paths, podIdentity(pod).uid);
  const mounts: ContainerMount[] = [];
  for (const index of (container.volumeMounts ?? []).keys())
    mounts.push(await volumeMount(deps, run, { ...mounting, index }));
  if (hasOwnHosts(run, container)) mounts.push(own(deps, "/etc/hosts", hostsPath(deps, run)));
  const messagePath = container.terminationMessagePath ?? "";
  if (messagePath !== "") {
    const file = `${base}/containers/${container.name}/${randomBytes(4).toString("hex")}`;
    await deps.files.writeFile(file, "", 0o666);
    mounts.push(own(deps, messagePath, file));
  }
  return mounts;
}

/** Makes what is the same for each instance of a container: the pod's /etc/hosts and the directory of its logs. */
export async function makePlaces(deps: ExecuteDeps, run: PodRun, container: Container): Promise<void> {
  const { pod } = run;
  const logs = deps.files.makeDir(`${podLogDir(deps.node.paths, podIdentity(pod))}/${container.name}`, 0o755);
  if (!hasOwnHosts(run, container)) return logs;
  const { clusterDomain } = deps.node.dns();
  const text = hostsFile(pod, { ips: run.sandbox?.ips ?? [], nodeHosts: deps.node.hostsFile(), clusterDomain });
  await Promise.all([logs, deps.files.writeFile(hostsPath(deps, run), text, 0o644)]);
}

/** Whether the container gets the pod's /etc/hosts: there is something to write, and it mounts none of its own. */
function hasOwnHosts({ pod, sandbox }: PodRun, container: Container): boolean {
  if ((container.volumeMounts ?? []).some((mount) => mount.mountPath === "/etc/hosts")) return false;
  return (sandbox?.ips ?? []).length > 0 || pod.spec.hostNetwork === true;
}

function hostsPath(deps: ExecuteDeps, { pod }: PodRun): string {
  return `${podDir(deps.node.paths, podIdentity(pod).uid)}/etc-hosts`;
}

/** Makes sure that the images are there that the container mounts as volumes. Rejects with a `StartError`. */
export async function pullImageVolumes(deps: ExecuteDeps, run: PodRun, container: Container): Promise<ImageVolumes> {
  const refs = new Map<string, string>();
  for (const { name } of container.volumeMounts ?? []) {
    const source = deps.volumes.source(run.pod, name);
    if (source.kind !== "image" || refs.has(name)) continue;
    const wanted = { ...container, image: source.reference, imagePullPolicy: source.pullPolicy };
    const { pod, journal, slot } = run;
    const request = { pod, container: wanted, journal, slot, ...pullSandbox(deps, run) };
    const { ref } = await deps.images.ensure(request, { signal: run.interrupt });
    refs.set(name, ref);
  }
  return refs;
}

async function volumeMount(
  deps: ExecuteDeps,
  run: PodRun,
  mounting: Mounting & { index: number },
): Promise<ContainerMount> {
  const { container, index } = mounting;
  const mount = container.volumeMounts?.[index];
  if (mount === undefined) throw new Error(`the container has no mount ${index}`);
  const subPath = subPathOf(mount, run, mounting);
  const source = deps.volumes.source(run.pod, mount.name);
  if (source.kind === "device")
    throw new ConfigError(`volume "${mount.name}" is in volumeMounts, but it is a block device`);
  const isReadOnly = source.kind === "image" || source.readonly || mount.readOnly === true;
  const shared = {
    containerPath: mount.mountPath,
    readonly: isReadOnly,
    ...((await isRecursive(deps, run, mount)) && { recursiveReadOnly: true }),
    propagation: propagation(mount.mountPropagation),
    ...(deps.node.hasSelinux === true && source.kind === "path" && !source.isUsers && { selinuxRelabel: true }),
  };
  if (source.kind === "image") {
    return {
      ...shared,
      hostPath: "",
      image: { ref: mounting.imageVolumes.get(mount.name) ?? source.reference, subPath },
    };
  }
  if (subPath === "") return { ...shared, hostPath: source.path };
  try {
    const place = { volume: mount.name, container: container.name, index, subPath };
    return { ...shared, hostPath: await deps.volumes.subPath(run.pod, place, { signal: run.interrupt }) };
  } catch (error) {
    if (run.interrupt.aborted) throw error;
    const { uid, name: pod } = podIdentity(run.pod);
    deps.log.warn("a subPath could not be mounted", { pod, uid, volume: mount.name, error: messageOf(error) });
    // What is on the host is not the pod's business, as in Kubernetes.
    const message = `failed to prepare subPath for volumeMount "${mount.name}" of container "${container.name}"`;
    throw new ConfigError(message, { cause: error });
  }
}

/** The mount's path inside the volume, empty for all of it. */
function subPathOf(mount: VolumeMount, run: PodRun, { container, environment: facts }: Mounting): string {
  const subPath = mount.subPathExpr
    ? expandAll(mount.subPathExpr, environment(run.pod, container, facts))
    : (mount.subPath ?? "");
  if (subPath.startsWith("/")) throw new ConfigError(`subPath ${JSON.stringify(subPath)} must not be an absolute path`);
  if (subPath.split("/").includes(".."))
    throw new ConfigError(`subPath ${JSON.stringify(subPath)} must not contain '..'`);
  return subPath;
}

/** A variable that is unknown or empty would name another directory than the one that is meant. */
function expandAll(text: string, variables: readonly { name: string; value: string }[]): string {
  const byName = new Map(variables.map(({ name, value }) => [name, value]));
  return expandEnv(text, (name) => {
    const value = byName.get(name) ?? "";
    if (value === "") throw new ConfigError(`missing value for ${name}`);
    return value;
  });
}

/** Whether everything mounted below is read-only too: as asked, or as far as the runtime can. */
async function isRecursive(deps: ExecuteDeps, run: PodRun, mount: VolumeMount): Promise<boolean> {
  const mode = mount.recursiveReadOnly ?? "Disabled";
  if (mode === "Disabled" || mount.readOnly !== true) return false;
  const { handlers } = await deps.runtime.status({ signal: run.interrupt });
  const isAble = handlers.some(({ name, recursiveReadOnlyMounts }) => name === "" && recursiveReadOnlyMounts);
  if (isAble || mode === "IfPossible") return isAble;
  throw new ConfigError(
    `failed to resolve recursive read-only mode: volume "${mount.name}" requested recursive read-only mode, but it is not supported by the runtime`,
  );
}

function propagation(mode: string | undefined): ContainerMount["propagation"] {
  if (mode === "Bidirectional") return "bidirectional";
  return mode === "HostToContainer" ? "hostToContainer" : "private";
}

/** A file of the agent's own. */
function own({ node }: ExecuteDeps, containerPath: string, hostPath: string): ContainerMount {
  const label = node.hasSelinux === true ? { selinuxRelabel: true } : {};
  return { containerPath, hostPath, readonly: false, propagation: "private", ...label };
}
