import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { CliError } from "./cli-error.ts";

/** A watchdog that wants to hear more often than every second is a mistake, as in Kubernetes. */
const SHORTEST_WATCHDOG_MS = 1000;

export interface SupervisorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  send(socket: string, text: string): Promise<void>;
}

/**
 * The service manager (systemd) that started the agent, if one did: it is told when the agent is ready and when it
 * stops, and at half of its watchdog's time that the agent's event loop still turns.
 */
export class Supervisor {
  private readonly socket: string;
  private readonly watchdogMs: number | undefined;
  private isTroubled = false;

  /** Throws a `CliError` for a watchdog that no agent can serve. */
  constructor(private readonly deps: SupervisorDeps) {
    this.socket = deps.env["NOTIFY_SOCKET"] ?? "";
    this.watchdogMs = watchdogOf(deps);
  }

  /** Tells that the agent is ready, then that it lives, until the signal aborts; then that it stops. */
  async run({ signal }: Abortable): Promise<void> {
    if (this.socket === "") return;
    await this.tell("READY=1");
    const { watchdogMs } = this;
    try {
      while (watchdogMs !== undefined && !signal.aborted) {
        await this.deps.clock.sleep(watchdogMs / 2, { signal });
        await this.tell("WATCHDOG=1");
      }
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    await this.tell("STOPPING=1");
  }

  /** Not being heard is the manager's trouble, not the pods': it is said once. */
  private async tell(text: string): Promise<void> {
    try {
      await this.deps.send(this.socket, text);
      this.isTroubled = false;
    } catch (error) {
      if (this.isTroubled) return;
      this.isTroubled = true;
      this.deps.log.warn("the service manager cannot be told", { text, error: messageOf(error) });
    }
  }
}

function watchdogOf({ env, pid }: SupervisorDeps): number | undefined {
  const text = env["WATCHDOG_USEC"] ?? "";
  const isOurs = (env["WATCHDOG_PID"] ?? "") === "" || env["WATCHDOG_PID"] === String(pid);
  if (text === "" || !isOurs) return undefined;
  const ms = Number(text) / 1000;
  if (!Number.isFinite(ms) || ms <= SHORTEST_WATCHDOG_MS) {
    throw new CliError(
      `WATCHDOG_USEC=${text}: the watchdog's time must be more than 1s; raise WatchdogSec= of the unit`,
    );
  }
  return ms;
}
