import type { Abortable } from "../../lib/abort.ts";
import { logLinkName } from "../../model/names.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import type { PodIdentity } from "../../model/step.ts";
import { podDir, podLogDir } from "../config/paths.ts";
import type { ExecuteDeps } from "./context.ts";

/** Removes a terminated container with its log files and its log link. Safe to repeat. */
export async function removeContainer(
  deps: ExecuteDeps,
  of: { pod: PodIdentity; container: ObservedContainer; keepLogs?: boolean },
  options: Abortable,
): Promise<void> {
  const { container, pod } = of;
  await deps.runtime.removeContainer(container.id, options);
  const link = { pod: pod.name, namespace: pod.namespace, container: container.name, containerId: container.id };
  await deps.files.removeFile(`${deps.node.paths.containerLogsDir}/${logLinkName(link)}`);
  if (of.keepLogs === true) return;
  const directory = `${podLogDir(deps.node.paths, pod)}/${container.name}`;
  // Rotated files have the same prefix: `3.log`, `3.log.20260101-101010.gz`.
  const names = (await deps.files.list(directory)).filter((name) => name.startsWith(`${container.attempt}.log`));
  for (const name of names) await deps.files.removeFile(`${directory}/${name}`);
}

/** Removes all that the runtime has of the pod: containers, then sandboxes. The logs stay. Safe to repeat. */
export async function removeInstances(
  deps: ExecuteDeps,
  of: { pod: PodIdentity; containers: readonly ObservedContainer[]; sandboxIds: readonly string[] },
  options: Abortable,
): Promise<void> {
  const { pod, containers, sandboxIds } = of;
  await Promise.all(containers.map((container) => removeContainer(deps, { pod, container, keepLogs: true }, options)));
  await Promise.all(sandboxIds.map((id) => deps.runtime.removeSandbox(id, options)));
}

/** Removes the files of the agent that containers could write to; nothing of the pod may run any more. Safe to repeat. */
export async function removeWrittenFiles(
  { files, node }: Pick<ExecuteDeps, "files" | "node">,
  uid: string,
): Promise<void> {
  const directory = podDir(node.paths, uid);
  await files.removeFile(`${directory}/etc-hosts`);
  await files.removeTree(`${directory}/containers`);
}

/** Removes the pod's log directory. Safe to repeat. */
export function removeLogs({ files, node }: Pick<ExecuteDeps, "files" | "node">, pod: PodIdentity): Promise<void> {
  return files.removeTree(podLogDir(node.paths, pod));
}

/** Removes the pod's own directory. Safe to repeat. */
export function removeDirectory({ files, node }: Pick<ExecuteDeps, "files" | "node">, uid: string): Promise<void> {
  return files.removeTree(podDir(node.paths, uid));
}

/** Removes the cgroups and logs of a pod of which only the UID is known. */
export async function removeRemains(
  deps: {
    readonly cgroups: Pick<ExecuteDeps["cgroups"], "remove">;
    readonly files: Pick<ExecuteDeps["files"], "list" | "removeTree">;
    readonly node: Pick<ExecuteDeps["node"], "paths" | "owner">;
  },
  uid: string,
): Promise<void> {
  await deps.cgroups.remove(uid);
  const { podLogsDir } = deps.node.paths;
  const names = (await deps.files.list(podLogsDir)).filter((name) => name.endsWith(`_${uid}`));
  for (const name of names) await deps.files.removeTree(`${podLogsDir}/${name}`);
}
