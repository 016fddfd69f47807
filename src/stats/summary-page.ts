import type { PodStorage } from "../model/pod-storage.ts";
import type { NodeSample } from "./samples.ts";
import { type SummaryFacts, summaryOf } from "./summary.ts";

interface Page {
  readonly storage: ReadonlyMap<string, PodStorage> | undefined;
  readonly bytes: Uint8Array;
}

/**
 * The text of the summary, made once for a sample however many ask for it, indented by one as the kubelet does. It is kept
 * with the sample and goes with it.
 */
export class SummaryPages {
  private readonly whole = new WeakMap<NodeSample, Page>();
  private readonly small = new WeakMap<NodeSample, Page>();

  read(facts: SummaryFacts): Uint8Array {
    const { node, storage, onlyCpuAndMemory } = facts;
    const pages = onlyCpuAndMemory ? this.small : this.whole;
    const known = pages.get(node);
    if (known !== undefined && known.storage === storage) return known.bytes;
    const bytes = Buffer.from(`${JSON.stringify(summaryOf(facts), undefined, 1)}\n`);
    pages.set(node, { storage, bytes });
    return bytes;
  }
}
