import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { LinuxHost } from "./index.ts";

interface ShareDeps {
  readonly host: Pick<LinuxHost, "makeShared">;
  readonly log: Pick<Logger, "info" | "warn">;
}

/**
 * Makes the root directory of the agent a shared mount, as in Kubernetes; but where mounting is not permitted the agent
 * runs, without mount propagation.
 */
export async function shareRootDir({ host, log }: ShareDeps, path: string): Promise<void> {
  try {
    if (await host.makeShared(path)) log.info("Made root directory a shared mount", { path });
  } catch (error) {
    log.warn("Failed to make root directory a shared mount", { path, error: messageOf(error) });
  }
}
