import { type Abortable, isAborted } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Logger } from "../../lib/log.ts";
import { untilAborted } from "../../lib/loop.ts";
import type { HttpListener } from "./http-server.ts";

/** Interval between two attempts to listen in milliseconds, as in Kubernetes. */
const RETRY_MS = 5000;

/**
 * A listener that keeps trying: a port in use must not take the agent down with it. Each different error is logged
 * once.
 */
export class KeptListener {
  private listener: HttpListener | undefined;
  private problem: string | undefined;
  private opening: Promise<boolean> | undefined;
  private readonly changes = new Listeners();

  constructor(
    private readonly deps: { log: Logger; clock: Clock; listen: () => Promise<HttpListener> },
    private readonly options: { readonly name: string },
  ) {}

  /** Which listener it is, for users. */
  get name(): string {
    return this.options.name;
  }

  /** The address that it listens on; undefined while it does not. */
  get address(): string | undefined {
    return this.listener?.address;
  }

  /** Why it does not listen, or undefined when it does (or was not tried yet). */
  get trouble(): string | undefined {
    return this.problem;
  }

  /** Calls back when it opens or fails with another error, until the signal aborts. */
  onChange(fn: () => void, options: Abortable): void {
    this.changes.add(fn, options);
  }

  /** Tries once: true if it is open. Call before `run` if the start should report the ports. */
  open(): Promise<boolean> {
    // Two tries at once would find the port taken by each other.
    this.opening ??= this.tryOpen().finally(() => {
      this.opening = undefined;
    });
    return this.opening;
  }

  /** Opens it, with retries, and closes it when the signal aborts. */
  async run({ signal }: Abortable): Promise<void> {
    try {
      while (!signal.aborted && !(await this.open())) await this.deps.clock.sleep(RETRY_MS, { signal });
      await untilAborted(signal);
    } catch (error) {
      if (!isAborted(error, signal)) throw error;
    } finally {
      await this.listener?.close();
      this.listener = undefined;
    }
  }

  private async tryOpen(): Promise<boolean> {
    const { log } = this.deps;
    const { name } = this.options;
    if (this.listener !== undefined) return true;
    try {
      this.listener = await this.deps.listen();
      this.problem = undefined;
      log.info("Started listening", { server: name, address: this.listener.address });
      this.changes.call();
      return true;
    } catch (error) {
      const problem = messageOf(error);
      if (problem === this.problem) return false;
      log.warn("Failed to listen, retrying", { server: name, error: problem, retryMs: RETRY_MS });
      this.problem = problem;
      this.changes.call();
      return false;
    }
  }
}
