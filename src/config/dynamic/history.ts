import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { type ConfigSource, sourceId, sourceName } from "./source.ts";
import type { DynamicStore, HistoryEntry } from "./store.ts";

/** Records the outcome of each configuration for operators; a full disk must not stop the change itself. */
export class ConfigHistory {
  constructor(private readonly deps: { readonly store: DynamicStore; readonly clock: Clock; readonly log: Logger }) {}

  /** Never rejects. The local configuration has no history. */
  async remember(
    source: ConfigSource | undefined,
    state: HistoryEntry["state"],
    why: string | undefined,
  ): Promise<void> {
    if (source === undefined) return;
    try {
      const id = sourceId(source);
      const before = (await this.deps.store.history()).find((entry) => entry.id === id);
      // One that was good stays so when another replaces it.
      const kept = state === "replaced" && before?.state !== "trial" ? before?.state : state;
      const at = before?.at ?? new Date(this.deps.clock.now().wall).toISOString();
      await this.deps.store.remember({ id, name: sourceName(source), at, state: kept ?? state, ...(why && { why }) });
    } catch (error) {
      this.deps.log.warn("Failed to write configuration history", { error: messageOf(error) });
    }
  }
}
