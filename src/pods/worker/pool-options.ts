import type { agentOptions, OptionStore } from "../../config/index.ts";
import { select } from "../../lib/live.ts";
import { OWNER_ANNOTATION } from "../../model/labels.ts";
import type { AdmissionNode } from "../admission/facts.ts";
import { crashLimits } from "../plan/crash-backoff.ts";
import type { PoolOptions } from "./pool-deps.ts";

/** The node as the pool needs it. */
export interface PoolNode {
  /** How many pods may usefully start at the same time on this machine. */
  readonly usefulStarts: number;
  admission(): AdmissionNode;
}

/** Returns the options of the `WorkerPool` from the agent's settings. `owner` marks the pods that are ours on a shared runtime. */
export function poolOptions(store: OptionStore<typeof agentOptions>, node: PoolNode, owner?: string): PoolOptions {
  return {
    maxConcurrentStarts: select(store.live("maxConcurrentStarts"), (o) => o.maxConcurrentStarts || node.usefulStarts),
    node: () => node.admission(),
    deadLimits: select(store.live("maximumDeadContainersPerContainer", "minimumContainerTTLDuration"), (o) => ({
      perContainer: o.maximumDeadContainersPerContainer,
      minAgeMs: o.minimumContainerTTLDuration,
    })),
    crashLimits: crashLimits(() => store.current.maxContainerRestartPeriod),
    ownsOrphan: ({ annotations }) => owner === undefined || annotations[OWNER_ANNOTATION] === owner,
  };
}
