import type { Container, Pod } from "../../model/generated/types.ts";
import { type NumaMask, numaMask } from "../../model/topology.ts";
import { initialContainers } from "../initial-containers.ts";
import type { MemoryBlock, MemoryState } from "./memory-state.ts";

/**
 * What containers that have initialized a pod hand on to those after them. Of one pod at a time: it is counted while its
 * containers are reserved one after the other, of which there may be thousands.
 */
export class HandedOnMemory {
  private uid = "";
  /** By nodes and kind. */
  private readonly amounts = new Map<string, number>();
  private pod: Pod | undefined;
  /** By nodes and kind: before this one of the containers that initialize the pod, none has anything left. */
  private readonly spent = new Map<string, number>();

  constructor(private readonly state: Pick<MemoryState, "blocks" | "setBlocks">) {}

  /** Bytes on exactly these nodes. */
  bytes(uid: string, mask: NumaMask, type: string): number {
    return this.uid === uid ? (this.amounts.get(`${mask}/${type}`) ?? 0) : 0;
  }

  /** Notes what the container hands on to those after it, or has of what was handed on. */
  note(pod: Pod, container: Container, blocks: readonly MemoryBlock[]): void {
    const { uid = "" } = pod.metadata;
    if (this.uid !== uid) this.amounts.clear();
    this.uid = uid;
    const isInitial = initialContainers(pod).has(container.name);
    for (const block of blocks) {
      const key = keyOf(block);
      const known = this.amounts.get(key) ?? 0;
      this.amounts.set(key, isInitial ? Math.max(known, block.bytes) : Math.max(0, known - block.bytes));
    }
  }

  /** What the container, which has just got these blocks, has of those before it is not counted twice at its release. */
  shrink(pod: Pod, container: Container, blocks: readonly MemoryBlock[]): void {
    if (this.pod !== pod) this.spent.clear();
    this.pod = pod;
    const initial = initialContainers(pod);
    const end = initial.countBefore(container.name);
    for (const block of blocks) {
      const key = keyOf(block);
      let at = Math.min(this.spent.get(key) ?? 0, end);
      for (let rest = block.bytes; rest > 0 && at < end; ) {
        const { taken, left } = this.take(pod, initial.names[at] ?? "", { key, bytes: rest });
        rest -= taken;
        if (left === 0) at++;
      }
      // Not after this container: those behind it may take what it just got.
      this.spent.set(key, at);
    }
  }

  /** A static pod may come back with the same UID. */
  release(uid: string): void {
    if (this.uid === uid) this.amounts.clear();
    if (this.pod?.metadata.uid === uid) this.pod = undefined;
  }

  private take(
    { metadata: { uid = "" } }: Pod,
    container: string,
    wanted: { readonly key: string; readonly bytes: number },
  ) {
    let taken = 0;
    let left = 0;
    const had = this.state.blocks(uid, container) ?? [];
    const shrunk = had.map((block) => {
      if (block.bytes === 0 || keyOf(block) !== wanted.key) return block;
      const bytes = Math.min(block.bytes, wanted.bytes - taken);
      taken += bytes;
      left += block.bytes - bytes;
      return { ...block, bytes: block.bytes - bytes };
    });
    if (taken > 0) this.state.setBlocks(uid, container, shrunk);
    return { taken, left };
  }
}

function keyOf({ nodes, type }: MemoryBlock): string {
  return `${numaMask(nodes)}/${type}`;
}
