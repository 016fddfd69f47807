import type { ContainerConfig, ContainerMount } from "../../../adapters/runtime/port.ts";
import { messageOf } from "../../../lib/errors.ts";
import { ConfigError } from "../../../model/config-error.ts";
import { expandEnv } from "../../../model/env-expand.ts";
import type { Container, VolumeMount } from "../../../model/generated/types.ts";
import { podIdentity } from "../../../model/pod-facts.ts";
import type { ExecuteDeps, PodRun, VolumeSource } from "../context.ts";
import { pullSandbox } from "../create-sandbox.ts";
import { runtimeHandlerOf } from "../runtime-handler.ts";
import type { ContainerContributor, ContainerCreation } from "./contributor.ts";

/** No path of the kernel is longer (PATH_MAX). */
const MOST_PATH_BYTES = 4096;

/** The mounts of a container's `volumeMounts`; `subPathExpr` sees the variables of the container. */
export function volumes(deps: ExecuteDeps): ContainerContributor {
  return {
    name: "volumes",
    overridesMounts: true,
    async contribute(creation, { env }) {
      const mounts: ContainerMount[] = [];
      for (const [index, mount] of (creation.container.volumeMounts ?? []).entries()) {
        mounts.push(await volumeMount(deps, creation, { mount, index, env }));
      }
      return { mounts };
    },
  };
}

/** Pulls the images that the container mounts as volumes; answers their references. Rejects with a `StartError`. */
export async function pullImageVolumes(
  deps: ExecuteDeps,
  run: PodRun,
  container: Container,
): Promise<ReadonlyMap<string, string>> {
  const refs = new Map<string, string>();
  for (const { name } of container.volumeMounts ?? []) {
    const source = deps.volumes.source(run.pod, name);
    if (source.kind !== "image" || refs.has(name)) continue;
    const wanted = { ...container, image: source.reference, imagePullPolicy: source.pullPolicy };
    const { pod, journal, slot } = run;
    const onWait = (text: string | undefined): void => run.onPullWait(container.name, text);
    const request = { pod, container: wanted, journal, slot, onWait, ...pullSandbox(deps, run) };
    const { ref } = await deps.images.ensure(request, { signal: run.interrupt });
    refs.set(name, ref);
  }
  return refs;
}

interface VolumeMounting {
  readonly mount: VolumeMount;
  readonly index: number;
  readonly env: ContainerConfig["envs"];
}

async function volumeMount(
  deps: ExecuteDeps,
  creation: ContainerCreation,
  { mount, index, env }: VolumeMounting,
): Promise<ContainerMount> {
  const { pod, imageVolumes } = creation;
  const subPath = subPathOf(mount, env);
  const source = deps.volumes.source(pod, mount.name);
  if (source.kind === "device")
    throw new ConfigError(`volume "${mount.name}" is in volumeMounts, but it is a block device`);
  const isReadOnly = source.kind === "image" || source.readonly || mount.readOnly === true;
  const shared = {
    containerPath: mount.mountPath,
    readonly: isReadOnly,
    ...((await isRecursive(deps, creation, mount)) && { recursiveReadOnly: true }),
    propagation: propagation(mount.mountPropagation),
    ...(deps.node.hasSelinux === true && isRelabelled(source) && { selinuxRelabel: true }),
  };
  if (source.kind === "image") {
    return { ...shared, hostPath: "", image: { ref: imageVolumes.get(mount.name) ?? source.reference, subPath } };
  }
  if (subPath === "") return { ...shared, hostPath: source.path };
  return { ...shared, hostPath: await subPathMount(deps, creation, { volume: mount.name, index, subPath }) };
}

/** What belongs to the user, and images, keep the labels that they have, unless the volume says otherwise. */
function isRelabelled(source: VolumeSource): boolean {
  return source.kind === "path" && (source.relabels ?? source.isUsers !== true);
}

async function subPathMount(
  deps: ExecuteDeps,
  { pod, container, interrupt }: ContainerCreation,
  of: { readonly volume: string; readonly index: number; readonly subPath: string },
): Promise<string> {
  try {
    return await deps.volumes.subPath(pod, { ...of, container: container.name }, { signal: interrupt });
  } catch (error) {
    if (interrupt.aborted) throw error;
    const { uid, name } = podIdentity(pod);
    const fields = { pod: name, podUID: uid, volume: of.volume, error: messageOf(error) };
    deps.log.warn("Failed to prepare subPath of volume mount", fields);
    // What is on the host is not the pod's business, as in Kubernetes.
    const message = `failed to prepare subPath for volumeMount "${of.volume}" of container "${container.name}"`;
    throw new ConfigError(message, { cause: error });
  }
}

/** The mount's path inside the volume, empty for all of it. */
function subPathOf(mount: VolumeMount, env: ContainerConfig["envs"]): string {
  const subPath = mount.subPathExpr ? expandAll(mount.subPathExpr, env) : (mount.subPath ?? "");
  if (subPath.startsWith("/")) throw new ConfigError(`subPath ${JSON.stringify(subPath)} must not be an absolute path`);
  if (subPath.split("/").includes(".."))
    throw new ConfigError(`subPath ${JSON.stringify(subPath)} must not contain '..'`);
  return subPath;
}

/** A variable that is unknown or empty would name another directory than the one that is meant. */
function expandAll(text: string, variables: ContainerConfig["envs"]): string {
  const byName = new Map(variables.map(({ name, value }) => [name, value]));
  const lookup = (name: string): string => {
    const value = byName.get(name) ?? "";
    if (value === "") throw new ConfigError(`missing value for ${name}`);
    return value;
  };
  return expandEnv(text, lookup, MOST_PATH_BYTES);
}

/** True if everything mounted below is read-only too: as asked, or as far as the runtime's handler of the pod can. */
async function isRecursive(deps: ExecuteDeps, creation: ContainerCreation, mount: VolumeMount): Promise<boolean> {
  const mode = mount.recursiveReadOnly ?? "Disabled";
  if (mode === "Disabled" || mount.readOnly !== true) return false;
  const options = { signal: creation.interrupt };
  const handler = await runtimeHandlerOf(deps, creation.pod, options);
  const { handlers } = await deps.runtime.status(options);
  const isAble = handlers.some(({ name, recursiveReadOnlyMounts }) => name === handler && recursiveReadOnlyMounts);
  if (isAble || mode === "IfPossible") return isAble;
  throw new ConfigError(
    `failed to resolve recursive read-only mode: volume "${mount.name}" requested recursive read-only mode, but it is not supported by the runtime`,
  );
}

function propagation(mode: string | undefined): ContainerMount["propagation"] {
  if (mode === "Bidirectional") return "bidirectional";
  return mode === "HostToContainer" ? "hostToContainer" : "private";
}
