import type { RuntimePort } from "../../adapters/runtime/port.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Logger } from "../../lib/log.ts";
import { deadLinks, type LogLink, orphanedLogs } from "./plan-log-sweep.ts";

export interface LogSweeperDeps {
  readonly runtime: Pick<RuntimePort, "listSandboxes" | "listContainers">;
  readonly files: {
    /** None if there is no such directory. */
    list(directory: string): Promise<readonly string[]>;
    /** Where a link points to; undefined if it is none. */
    readLink(path: string): Promise<string | undefined>;
    /** Whether there is something at a path; a link there is not followed. */
    hasEntry(path: string): Promise<boolean>;
    removeFile(path: string): Promise<void>;
    removeTree(path: string): Promise<void>;
  };
  readonly log: Logger;
  /** True for a pod that a source or a worker has. */
  isKnown(uid: string): boolean;
}

export interface LogPaths {
  readonly podLogsDir: string;
  readonly containerLogsDir: string;
}

/** Removes the logs of pods that neither a source nor the runtime has, and links to logs that are gone. */
export class LogSweeper {
  constructor(
    private readonly deps: LogSweeperDeps,
    private readonly paths: LogPaths,
  ) {}

  /** Call only when every source has delivered its pods. What cannot be removed is logged; rejects if nothing can be listed. */
  async sweep(options: Abortable): Promise<void> {
    await this.sweepDirectories(options);
    await this.sweepLinks(options);
  }

  /** In this order: a pod whose directory is listed was known by then. */
  private async sweepDirectories(options: Abortable): Promise<void> {
    const { files, runtime, isKnown } = this.deps;
    const { podLogsDir } = this.paths;
    const names = await files.list(podLogsDir);
    if (orphanedLogs(names, isKnown).length === 0) return;
    const inRuntime = new Set((await runtime.listSandboxes({}, options)).map(({ metadata }) => metadata.uid));
    for (const name of orphanedLogs(names, (uid) => isKnown(uid) || inRuntime.has(uid))) {
      await this.remove(`${podLogsDir}/${name}`, (path) => files.removeTree(path));
    }
  }

  private async sweepLinks(options: Abortable): Promise<void> {
    const { files, runtime } = this.deps;
    const { containerLogsDir } = this.paths;
    const links: LogLink[] = [];
    for (const name of await files.list(containerLogsDir)) {
      const target = name.endsWith(".log") ? await files.readLink(`${containerLogsDir}/${name}`) : undefined;
      if (target?.startsWith("/")) links.push({ name, hasTarget: await files.hasEntry(target) });
    }
    if (links.every(({ hasTarget }) => hasTarget)) return;
    const containers = await runtime.listContainers({}, options);
    const alive = new Set(containers.filter(({ state }) => state !== "exited").map(({ id }) => id));
    for (const name of deadLinks(links, (id) => alive.has(id))) {
      await this.remove(`${containerLogsDir}/${name}`, (path) => files.removeFile(path));
    }
  }

  private async remove(path: string, remove: (path: string) => Promise<void>): Promise<void> {
    const { log } = this.deps;
    try {
      await remove(path);
      log.info("Removed logs of a pod that is gone", { path });
    } catch (error) {
      log.error("Failed to remove logs of a pod that is gone", error, { path });
    }
  }
}
