import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import { ProjectBook } from "./project-book.ts";
import { ProjectQuotas } from "./project-quotas.ts";
import { LinuxQuotaCalls } from "./quota-calls.ts";
import { SystemCalls } from "./system-calls.ts";

/** Project quotas of this machine, used while `isOn`. */
export function openQuotas({ clock, log }: { clock: Clock; log: Logger }, isOn: () => boolean): ProjectQuotas {
  const lock = async (fd: number): Promise<void> => {
    const calls = await SystemCalls.load();
    if (calls === undefined) throw new Error("lock file: the C library is not available");
    await calls.lock(fd);
  };
  return new ProjectQuotas({ calls: () => LinuxQuotaCalls.load(), book: new ProjectBook({ clock, lock }), log, isOn });
}
