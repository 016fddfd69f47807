import { type Abortable, AbortScope, TimeLimitError } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { OpenStep, PodJournal } from "../journal.ts";

/**
 * The preStop hooks of a pod's containers. Each runs once, however often the kill is begun again: a kill with a shorter
 * grace period waits for the hook that runs, where Kubernetes cuts it off and runs it a second time.
 */
export class PreStopHooks {
  private readonly begun = new Map<string, PreStopHook>();

  /** Ids of containers whose hook has begun. */
  get ids(): readonly string[] {
    return [...this.begun.keys()];
  }

  /** Returns the hook of a container, begun by this call or by an earlier one. */
  begin(containerId: string, begin: () => PreStopHook): PreStopHook {
    const hook = this.begun.get(containerId) ?? begin();
    this.begun.set(containerId, hook);
    return hook;
  }

  /** The container has terminated, or could not be stopped: its hook ends, and is not run again. */
  end(containerId: string): void {
    this.begun.get(containerId)?.abort();
  }

  /** Ends and drops the hooks of all but these containers. */
  retain(containerIds: ReadonlySet<string>): void {
    for (const [id, hook] of this.begun) {
      if (containerIds.has(id)) continue;
      hook.abort();
      this.begun.delete(id);
    }
  }
}

/** A preStop hook that has begun. It ends by itself, with its container, or with the agent. */
export class PreStopHook {
  private readonly scope: AbortScope;
  private readonly step: OpenStep;
  private readonly done: Promise<void>;
  /** It has ended, or has outlived a grace period: nobody waits for it any more. */
  private isOver = false;

  constructor(
    private readonly of: { readonly container: string; readonly journal: PodJournal; readonly clock: Clock },
    run: (options: Abortable) => Promise<void>,
    finish: AbortSignal,
  ) {
    this.scope = new AbortScope([finish]);
    this.step = of.journal.begin("hook", { container: of.container, detail: "preStop" });
    this.done = run(this.scope)
      .then(
        () => this.succeeded(),
        (error: unknown) => this.failed(error),
      )
      .finally(() => this.scope.dispose());
  }

  /** Waits at most the grace period; a hook that outlives it goes on beside the signal, as in Kubernetes. */
  async wait(graceSeconds: number, { signal }: Abortable): Promise<void> {
    if (this.isOver) return;
    const ms = graceSeconds * 1000;
    const limit = new AbortScope([signal]);
    const tooLong = this.of.clock.sleep(ms, limit).then(
      () => this.failed(new TimeLimitError(ms)),
      () => undefined,
    );
    await Promise.race([this.done, tooLong]);
    limit.abort();
    limit.dispose();
    signal.throwIfAborted();
  }

  abort(): void {
    this.isOver = true;
    this.step.abort();
    this.scope.abort();
  }

  private succeeded(): void {
    this.isOver = true;
    this.step.done("preStop");
  }

  private failed(error: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    // The agent stops.
    if (this.scope.signal.aborted) return this.step.abort();
    this.step.fail(error);
    const { journal, container } = this.of;
    journal.event("Warning", "FailedPreStopHook", { message: "PreStopHook failed", container });
  }
}
