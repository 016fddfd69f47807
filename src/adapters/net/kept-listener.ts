import { type Abortable, isAborted } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { HttpListener } from "./http-server.ts";

/** How long to wait before a listener that could not open is tried again; as in Kubernetes. */
const RETRY_MS = 5000;

/**
 * A listener that a taken port cannot take the agent down with: pods matter more than ports. Until it opens it is
 * tried again every 5 s, and what is wrong is said once for each different cause.
 */
export class KeptListener {
  private listener: HttpListener | undefined;
  private problem: string | undefined;
  private opening: Promise<boolean> | undefined;
  private readonly watchers = new Set<() => void>();

  constructor(
    private readonly deps: { log: Logger; clock: Clock; listen: () => Promise<HttpListener> },
    private readonly options: { readonly name: string },
  ) {}

  /** Which listener it is, for users. */
  get name(): string {
    return this.options.name;
  }

  /** Where it listens now, or undefined while it does not. */
  get address(): string | undefined {
    return this.listener?.address;
  }

  /** Why it does not listen, or undefined when it does (or was not tried yet). */
  get trouble(): string | undefined {
    return this.problem;
  }

  /** Calls back when it opens, or is kept from it by something else, until the signal aborts. */
  onChange(fn: () => void, { signal }: Abortable): void {
    const watcher = (): void => fn();
    this.watchers.add(watcher);
    signal.addEventListener("abort", () => void this.watchers.delete(watcher), { once: true });
  }

  /** Tries once: true when it is open. Call before `run` when the start should report the ports. */
  open(): Promise<boolean> {
    // Two tries at once would find the port taken by each other.
    this.opening ??= this.tryOpen().finally(() => {
      this.opening = undefined;
    });
    return this.opening;
  }

  /** Opens it, sooner or later, and closes it when the signal aborts. */
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
      log.info("listening", { server: name, address: this.listener.address });
      this.changed();
      return true;
    } catch (error) {
      const problem = messageOf(error);
      if (problem === this.problem) return false;
      log.warn("cannot listen, retrying every 5 s", { server: name, problem });
      this.problem = problem;
      this.changed();
      return false;
    }
  }

  private changed(): void {
    for (const watcher of [...this.watchers]) watcher();
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
