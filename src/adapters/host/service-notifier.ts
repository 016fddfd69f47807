import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { HostError } from "./host-error.ts";
import { sendDatagram } from "./notify-socket.ts";

/** The shortest watchdog interval, as in Kubernetes. */
const SHORTEST_WATCHDOG_MS = 1000;

export interface ServiceNotifierDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  send(socket: string, text: string): Promise<void>;
}

/**
 * Notifies the service manager (systemd) that started the agent, if one did: when the agent is ready and when it stops,
 * and at half the watchdog interval, from the event loop, that it is alive, as long as it makes progress.
 */
export class ServiceNotifier {
  private readonly socket: string;
  private readonly watchdogMs: number | undefined;
  private isFailing = false;

  /** Throws `InvalidArgument` for a watchdog interval that is too short. */
  constructor(private readonly deps: ServiceNotifierDeps) {
    this.socket = deps.env["NOTIFY_SOCKET"] ?? "";
    this.watchdogMs = watchdogOf(deps);
  }

  /** Notifies ready, then alive until the signal aborts, then stopping. Not alive while `stalled` returns a reason. */
  async run({ signal }: Abortable, stalled: () => string | undefined = () => undefined): Promise<void> {
    if (this.socket === "") return;
    await this.notify("READY=1");
    const { watchdogMs } = this;
    try {
      while (watchdogMs !== undefined && !signal.aborted) {
        await this.deps.clock.sleep(watchdogMs / 2, { signal });
        const reason = stalled();
        if (reason === undefined) await this.notify("WATCHDOG=1");
        else
          this.deps.log.warn("Withheld the watchdog notification, the service manager will restart the agent", {
            reason,
          });
      }
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    await this.notify("STOPPING=1");
  }

  /** A service manager that cannot be reached is no reason to stop: it is logged once. */
  private async notify(text: string): Promise<void> {
    try {
      await this.deps.send(this.socket, text);
      this.isFailing = false;
    } catch (error) {
      if (this.isFailing) return;
      this.isFailing = true;
      this.deps.log.warn("Failed to notify the service manager", { text, error: messageOf(error) });
    }
  }
}

/** The service manager of this process. */
export function serviceNotifier(deps: Pick<ServiceNotifierDeps, "clock" | "log">): ServiceNotifier {
  return new ServiceNotifier({ ...deps, env: process.env, pid: process.pid, send: sendDatagram });
}

function watchdogOf({ env, pid }: ServiceNotifierDeps): number | undefined {
  const text = env["WATCHDOG_USEC"] ?? "";
  const isOurs = (env["WATCHDOG_PID"] ?? "") === "" || env["WATCHDOG_PID"] === String(pid);
  if (text === "" || !isOurs) return undefined;
  const ms = Number(text) / 1000;
  if (!Number.isFinite(ms) || ms <= SHORTEST_WATCHDOG_MS) {
    throw new HostError(
      "InvalidArgument",
      `WATCHDOG_USEC=${text}: the watchdog's time must be more than 1s; raise WatchdogSec= of the unit`,
    );
  }
  return ms;
}
