import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { Loop } from "../../lib/loop.ts";
import type { RuntimePort } from "../runtime/port.ts";
import { ShimAudit } from "./orphaned-shims.ts";
import { sandboxOf } from "./processes.ts";

/** Interval between two searches, in milliseconds: orphaned shims cost memory, and nothing else. */
const EVERY_MS = 600_000;

interface ReportDeps {
  readonly runtime: Pick<RuntimePort, "listSandboxes">;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly audit?: Pick<ShimAudit, "find">;
}

/** Reports the orphaned shims of a containerd that is not the agent's own, each once: killing them is up to its owner. */
export function shimReport({ runtime, clock, log, ...deps }: ReportDeps, endpoint: string): Loop {
  const audit = deps.audit ?? new ShimAudit(endpoint.replace(/^unix:\/\//, ""));
  const reported = new Set<number>();
  const look = async (options: Abortable): Promise<void> => {
    const sandboxes = await runtime.listSandboxes({}, options).catch(() => undefined);
    const orphaned = audit.find(sandboxes && new Set(sandboxes.map(({ id }) => id)));
    for (const shim of orphaned.filter(({ pid }) => !reported.has(pid))) {
      reported.add(shim.pid);
      log.warn("Found orphaned shim, which containerd lost track of", { pid: shim.pid, sandboxID: sandboxOf(shim) });
    }
    for (const pid of reported) if (!orphaned.some((shim) => shim.pid === pid)) reported.delete(pid);
  };
  return {
    name: "orphaned shims",
    run: async (signal) => {
      while (!signal.aborted) {
        await clock.sleep(EVERY_MS, { signal });
        await look({ signal });
      }
    },
  };
}
