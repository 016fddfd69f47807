import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { LinuxHost } from "./index.ts";

interface DirectoriesDeps {
  readonly host: Pick<LinuxHost, "makeDir" | "exec">;
  readonly log: Pick<Logger, "warn">;
}

/** Below the root directory: what plugins stage and their own sockets, and those that they register with. */
const DIRECTORIES = ["plugins", "plugins_registry", "device-plugins"];
/** Containers may write to files with this label, also those that are not privileged; the same as in Kubernetes. */
const LABEL = "system_u:object_r:container_file_t:s0";
/** Milliseconds until a start goes on without a label. */
const LABEL_MS = 5000;

/**
 * Makes the directories that plugins in pods mount from the host before any pod starts, and labels them on a machine with
 * SELinux. Plugins in privileged containers need no label: a failure is logged.
 */
export async function makePluginDirectories(
  { host, log }: DirectoriesDeps,
  { rootDir, hasSelinux }: { readonly rootDir: string; readonly hasSelinux: boolean },
): Promise<void> {
  for (const name of DIRECTORIES) {
    const path = `${rootDir}/${name}`;
    await host.makeDir(path, 0o750);
    if (!hasSelinux) continue;
    try {
      const { code, stderr } = await host.exec("chcon", ["--", LABEL, path], { timeoutMs: LABEL_MS });
      if (code !== 0) throw new Error(`set SELinux label of ${path}: ${stderr.trim()}`);
    } catch (error) {
      log.warn("Failed to set SELinux label of plugin directory", { path, error: messageOf(error) });
    }
  }
}
