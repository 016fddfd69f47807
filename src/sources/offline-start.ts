import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import { untilAborted } from "../lib/loop.ts";
import type { Pod } from "../model/generated/types.ts";
import { ApiCheckpoint, type CheckpointContent, isTerminalPod, maySafelyRunTwice } from "./api-checkpoint.ts";
import type { ApiFacts } from "./api-facts.ts";
import type { ApiObjects } from "./api-objects.ts";
import type { ApiPods } from "./api-pods.ts";

/** An API server that is not reached this long after the start counts as unavailable, in milliseconds. */
const UNAVAILABLE_AFTER_MS = 5000;

export interface OfflineStartDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly objects: ApiObjects;
  readonly facts: ApiFacts;
  /** `checkpointSecrets`, which may change while the agent runs. */
  mayHoldSecrets(): boolean;
  /** Undefined until the source of API pods is built. */
  pods(): ApiPods | undefined;
}

/** Checkpoints the pods that may run without the API server, and starts them if it is unavailable at the start. */
export class OfflineStart {
  private readonly checkpoint: ApiCheckpoint;

  constructor(
    private readonly deps: OfflineStartDeps,
    rootDir: string,
  ) {
    const { clock, log } = deps;
    this.checkpoint = new ApiCheckpoint(
      { clock, log, content: () => this.content(), mayHoldSecrets: () => deps.mayHoldSecrets() },
      rootDir,
    );
  }

  /** Something that is checkpointed may have changed. */
  touch(): void {
    this.checkpoint.touch();
  }

  /** The server has a newer copy of a pod: one that ended leaves the checkpoint, though it is not published for that. */
  seen(pod: Pod): void {
    if (isTerminalPod(pod)) this.checkpoint.touch();
  }

  /** Restores the checkpoint if the API server is unavailable; runs until the signal aborts. */
  async run(pods: ApiPods, { signal }: Abortable): Promise<void> {
    const { clock, log, objects, facts } = this.deps;
    await this.checkpoint.purge();
    await clock.sleep(UNAVAILABLE_AFTER_MS, { signal }).catch(() => undefined);
    const stored = signal.aborted || !pods.isUnavailable ? undefined : await this.checkpoint.load();
    if (stored !== undefined && pods.isUnavailable) {
      log.warn("API server is unavailable, starting pods from the checkpoint", { pods: stored.pods.length });
      objects.restore("ConfigMap", stored.configMaps);
      objects.restore("Secret", stored.secrets);
      facts.restore(stored.services, stored.runtimeClasses);
      pods.startOffline(stored.pods);
    }
    await untilAborted(signal);
    await this.checkpoint.close();
  }

  private content(): CheckpointContent {
    const { objects, facts } = this.deps;
    const pods = (this.deps.pods()?.current() ?? []).filter(maySafelyRunTwice);
    return {
      pods,
      configMaps: objects.known("ConfigMap", pods),
      secrets: this.deps.mayHoldSecrets() ? objects.known("Secret", pods) : [],
      ...facts.known(pods),
    };
  }
}
