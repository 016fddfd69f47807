import type { RuntimeImage } from "../../adapters/runtime/port.ts";
import { AbortScope } from "../../lib/abort.ts";
import type { Container } from "../../model/generated/types.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";
import { describeSandbox } from "./create-sandbox.ts";
import { runtimeHandlerOf } from "./runtime-handler.ts";

/**
 * The pull for the first container that a run starts, begun before the pod waits for its turn and its sandbox: of many
 * pods with new images the pulls follow one another from the beginning, and not only once sandboxes exist.
 */
export class EarlyPull {
  private readonly scope: AbortScope;
  private result: Promise<{ ref: string; image: RuntimeImage }> | undefined;
  private isSettled = false;

  constructor(
    private readonly deps: ExecuteDeps,
    private readonly run: PodRun,
    private readonly container: Container | undefined,
  ) {
    this.scope = new AbortScope([run.interrupt]);
  }

  /** Begins the pull, if there is a container to pull for. `attempt` is that of the sandbox to be created. */
  begin(attempt: number): void {
    const { deps, run, container } = this;
    if (this.result !== undefined || container === undefined) return;
    const request = {
      pod: run.pod,
      container,
      journal: run.journal,
      // The pod waits for its slot, or holds it for its sandbox.
      slot: { release: () => undefined },
      onWait: (text: string | undefined) => run.onPullWait(container.name, text),
      sandbox: () => describeSandbox(deps, run, attempt),
      runtimeHandler: () => runtimeHandlerOf(deps, run.pod, this.scope),
    };
    const settled = (): void => {
      this.isSettled = true;
    };
    this.result = deps.images.ensure(request, this.scope);
    this.result.then(settled, settled);
  }

  /** Returns the image of the container if its pull has begun. Other pods may start until it has ended. */
  take(container: Container): Promise<{ ref: string; image: RuntimeImage }> | undefined {
    if (this.result === undefined || container.name !== this.container?.name) return undefined;
    if (!this.isSettled) this.run.slot.release();
    return this.result;
  }

  /** Aborts the pull if it goes on, and resolves once nothing is under way any more. */
  async end(): Promise<void> {
    this.scope.abort();
    await this.result?.catch(() => undefined);
    this.scope.dispose();
  }
}
