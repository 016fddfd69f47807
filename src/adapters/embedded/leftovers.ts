import { createHash } from "node:crypto";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Layout } from "./layout.ts";
import { listProcesses, ownProcesses, type ProcessInfo } from "./processes.ts";

/** containerd 1.6 keeps the shims' sockets in one fixed place, under a hash of our socket and the shim's id. */
export function shimSocketPaths(layout: Layout): string[] {
  const ids = names(join(layout.containerdState, "io.containerd.runtime.v2.task", "k8s.io"));
  const paths = [
    ...ids.map((id) => socketPathOf(layout, id)),
    ...ownProcesses(listProcesses(), layout).shims.map((shim) => shimSocketPath(layout, shim)),
  ];
  return [...new Set(paths)].filter((path) => existsSync(path));
}

/** The socket of a running shim of containerd 1.6, whether or not it is still there. */
export function shimSocketPath(layout: Layout, { argv }: Pick<ProcessInfo, "argv">): string {
  return socketPathOf(layout, argv[argv.indexOf("-id") + 1] ?? "");
}

function socketPathOf(layout: Layout, id: string): string {
  const hash = createHash("sha256").update(join(layout.socket, "k8s.io", id));
  return join("/run/containerd/s", hash.digest("hex"));
}

/** The CNI library keeps the last result of each pod under the network's name. */
export function cniResults(layout: Layout): string[] {
  const directory = "/var/lib/cni/results";
  return names(directory).flatMap((name) => (name.startsWith(`${layout.name}-`) ? [join(directory, name)] : []));
}

/** Links of the standard log layout that lead into our state directory. */
export function logLinks(layout: Layout): string[] {
  const directory = "/var/log/containers";
  return names(directory)
    .map((name) => join(directory, name))
    .filter((path) => {
      try {
        return readlinkSync(path).startsWith(`${layout.stateDir}/`);
      } catch {
        return false;
      }
    });
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
