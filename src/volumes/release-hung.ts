import { type Abortable, TimeLimitError } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { VolumeHost } from "./kind.ts";
import { isRemoteFilesystem } from "./mount-options.ts";

export interface ReleaseDeps {
  readonly host: Pick<VolumeHost, "mountsBelow" | "mountAt" | "otherMounts" | "kindOf" | "unmountByForce">;
  readonly log: Logger;
}

/**
 * Ends what processes of a pod wait for from servers that do not answer: the kernel does not kill one that writes back. What
 * they had not written is lost, as by the loss of the server. Filesystems that are mounted outside the pod's directory are
 * left: others may wait for the server to come back. Returns the mounts. Safe to repeat; rejects only on abort.
 */
export async function releaseHung(
  deps: ReleaseDeps,
  directory: string,
  options: Abortable,
): Promise<readonly string[]> {
  const { host, log } = deps;
  const released: string[] = [];
  // Both lists have the kernel's paths, which are not those below the directory if that is reached by a link.
  const own = new Set(await host.mountsBelow(directory));
  for (const path of own) {
    const { type = "", source = "" } = (await host.mountAt(path)) ?? {};
    if (!isRemoteFilesystem(type)) continue;
    const others = (await host.otherMounts(path, { isAny: true })).filter((one) => !own.has(one));
    if (others.length > 0 || (await answers(path, host, options))) continue;
    log.warn("Unmounting volume by force: its server does not answer and processes of the pod hang", { path, source });
    await host.unmountByForce(path, options).catch((error: unknown) => {
      options.signal.throwIfAborted();
      log.warn("Failed to unmount volume by force", { path, error: messageOf(error) });
    });
    released.push(path);
  }
  return released;
}

async function answers(path: string, host: ReleaseDeps["host"], options: Abortable): Promise<boolean> {
  try {
    await host.kindOf(path, options);
    return true;
  } catch (error) {
    options.signal.throwIfAborted();
    return !(error instanceof TimeLimitError);
  }
}
