import type { Abortable } from "../../lib/abort.ts";
import {
  type ConnectionTable,
  type DatagramFlow,
  type Forwarding,
  type ForwardingChange,
  type ForwardingTable,
  NetfilterError,
} from "./port.ts";

/** A table of forwardings in memory. */
export class FakeForwardingTable implements ForwardingTable {
  /** What "the kernel" holds; undefined: no table. Tests may flush it. */
  kernel: Map<string, Forwarding> | undefined;
  /** The keys of each write. */
  readonly writes: string[][] = [];
  /** Thrown by the next call. */
  failure: NetfilterError | undefined;
  private written = new Map<string, Forwarding>();

  async replace(forwardings: readonly Forwarding[], { signal }: Abortable): Promise<boolean> {
    this.enter(signal);
    this.written = new Map(forwardings.map((one) => [one.key, one]));
    if (this.isSame()) return false;
    this.kernel = new Map(this.written);
    this.writes.push([...this.written.keys()]);
    return true;
  }

  async update({ set, remove }: ForwardingChange, { signal }: Abortable): Promise<void> {
    this.enter(signal);
    const known = remove.filter((key) => this.written.has(key));
    for (const key of known) this.written.delete(key);
    for (const one of set) this.written.set(one.key, one);
    const kernel = this.kernel;
    if (kernel === undefined || known.some((key) => !kernel.has(key))) {
      throw new NetfilterError("Damaged", "write nftables: No such file or directory");
    }
    for (const key of known) kernel.delete(key);
    for (const one of set) kernel.set(one.key, one);
    this.writes.push([...known, ...set.map(({ key }) => key)]);
  }

  async isIntact({ signal }: Abortable): Promise<boolean> {
    this.enter(signal);
    return this.isSame();
  }

  private isSame(): boolean {
    const text = (map: ReadonlyMap<string, Forwarding>): string =>
      JSON.stringify([...map.values()].filter(({ targets }) => targets.length > 0).sort(byKey));
    return this.kernel !== undefined && text(this.kernel) === text(this.written);
  }

  private enter(signal: AbortSignal): void {
    signal.throwIfAborted();
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

/** Remembers what was forgotten. */
export class FakeConnectionTable implements ConnectionTable {
  readonly forgotten: DatagramFlow[] = [];

  async forget(flow: DatagramFlow, { signal }: Abortable): Promise<void> {
    signal.throwIfAborted();
    this.forgotten.push(flow);
  }
}

function byKey(a: Forwarding, b: Forwarding): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}
