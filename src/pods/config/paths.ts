import { podLogDirectoryName } from "../../model/names.ts";
import type { PodIdentity } from "../../model/step.ts";

/** The directories that pods live in on the host. */
export interface PodPaths {
  /** The root directory, default /var/lib/kubelet; ROOT in other comments. */
  readonly rootDir: string;
  /** Default /var/log/pods. */
  readonly podLogsDir: string;
  /** The flat directory of symlinks, default /var/log/containers. */
  readonly containerLogsDir: string;
}

/** `ROOT/pods/UID`: everything of the pod that is not in the runtime. */
export function podDir(paths: PodPaths, uid: string): string {
  return `${paths.rootDir}/pods/${uid}`;
}

/** `PODLOGS/NAMESPACE_NAME_UID`. */
export function podLogDir(paths: PodPaths, pod: PodIdentity): string {
  return `${paths.podLogsDir}/${podLogDirectoryName(pod)}`;
}
