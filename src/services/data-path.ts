import type { ConnectionTable, DatagramFlow, Forwarding, ForwardingTable } from "../adapters/nftables/index.ts";
import { NetfilterError } from "../adapters/nftables/index.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import { Wakes } from "../lib/wakes.ts";
import { forwardingsOf } from "./forwardings.ts";
import type { ServiceBook } from "./service-book.ts";

/** How often the kernel's table is compared: only then a foreign flush is found, in milliseconds. */
const AUDIT_MS = 60_000;

export interface DataPathDeps {
  readonly book: Pick<ServiceBook, "hasSynced" | "all" | "get" | "endpoints" | "onChange">;
  readonly table: ForwardingTable;
  readonly connections: ConnectionTable;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Keeps the kernel's forwardings as the services are: a change costs work for the service that changed. */
export class DataPath {
  /** What was written, by service. */
  private readonly written = new Map<string, readonly Forwarding[]>();
  private readonly dirty = new Set<string>();
  private needsAll = true;
  private lastProblem = "";

  constructor(
    private readonly deps: DataPathDeps,
    /** Addresses of services that the node itself answers: they need no forwarding. */
    private readonly ownAddresses: readonly string[],
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    const { book, clock } = this.deps;
    const backoff = new Backoff({ initialMs: 200, maxMs: 30_000, jitter: 0.1 });
    const wakes = new Wakes(clock);
    let auditAt = clock.now().mono + AUDIT_MS;
    book.onChange(
      (key) => {
        if (key !== "") this.dirty.add(key);
        wakes.wake();
      },
      { signal },
    );
    try {
      while (!signal.aborted) {
        wakes.clear();
        if (await this.attempt({ signal })) backoff.reset();
        else {
          await clock.sleep(backoff.next(clock.now()), { signal });
          continue;
        }
        await wakes.sleep(Math.max(0, auditAt - clock.now().mono), signal);
        if (signal.aborted || clock.now().mono < auditAt) continue;
        auditAt = clock.now().mono + AUDIT_MS;
        if (!this.needsAll) await this.audit({ signal });
      }
    } catch (error) {
      if (!isAborted(error, signal)) throw error;
    }
  }

  /** True if the table is as wanted, or nothing is known yet. */
  private async attempt(options: Abortable): Promise<boolean> {
    try {
      if (this.deps.book.hasSynced) await this.sync(options);
      return true;
    } catch (error) {
      if (!(error instanceof NetfilterError)) throw error;
      this.report(error);
      return false;
    }
  }

  private async sync(options: Abortable): Promise<void> {
    const { book, table, log } = this.deps;
    const changed = this.needsAll ? new Set([...book.all].map(keyOf)) : new Set(this.dirty);
    if (this.needsAll) for (const key of this.written.keys()) changed.add(key);
    if (changed.size === 0 && !this.needsAll) return;
    this.dirty.clear();
    const before = new Map([...changed].map((key) => [key, this.written.get(key) ?? []]));
    for (const key of changed) {
      const next = this.wanted(key);
      if (next.length === 0) this.written.delete(key);
      else this.written.set(key, next);
    }
    const after = new Map([...changed].map((key) => [key, this.written.get(key) ?? []]));
    try {
      if (this.needsAll) {
        const didWrite = await table.replace([...this.written.values()].flat(), options);
        if (didWrite) log.info("Wrote forwardings of services", { table: "nftables", services: this.written.size });
      } else await table.update(difference(before, after), options);
    } catch (error) {
      this.needsAll = true;
      throw error;
    }
    this.needsAll = false;
    this.lastProblem = "";
    for (const flow of [...changed].flatMap((key) => staleFlows(before.get(key) ?? [], after.get(key) ?? []))) {
      await this.forget(flow, options);
    }
  }

  private wanted(key: string): readonly Forwarding[] {
    const { book } = this.deps;
    const service = book.get(key);
    if (service === undefined || this.ownAddresses.includes(service.spec?.clusterIP ?? "")) return [];
    // Nor may a service take them by another field.
    return forwardingsOf(service, book.endpoints(key)).map((one) => ({
      ...one,
      addresses: one.addresses.filter((address) => !this.ownAddresses.includes(address)),
    }));
  }

  private async audit(options: Abortable): Promise<void> {
    try {
      if (await this.deps.table.isIntact(options)) return;
      this.deps.log.warn("Rewriting forwardings of services after a foreign change", { table: "nftables" });
      this.needsAll = true;
    } catch (error) {
      if (!(error instanceof NetfilterError)) throw error;
      this.report(error);
    }
  }

  /** Flows that a kernel without the program still remembers end by themselves, after 30 to 120 seconds of silence. */
  private async forget(flow: DatagramFlow, options: Abortable): Promise<void> {
    try {
      await this.deps.connections.forget(flow, options);
    } catch (error) {
      if (!(error instanceof NetfilterError)) throw error;
      this.deps.log.debug(2, "Failed to remove datagram flows of an endpoint", { error: error.message });
    }
  }

  private report(error: NetfilterError): void {
    if (error.message === this.lastProblem) return;
    this.lastProblem = error.message;
    this.deps.log.warn("Failed to write forwardings of services, retrying", { error: error.message });
  }
}

type ByService = ReadonlyMap<string, readonly Forwarding[]>;

function difference(before: ByService, after: ByService) {
  const set = [...after.values()].flat();
  const kept = new Set(set.map(({ key }) => key));
  return { set, remove: [...before.values()].flat().flatMap(({ key }) => (kept.has(key) ? [] : [key])) };
}

/**
 * Datagrams have no end of a connection: flows to a target that is gone would be sent there as long as the client goes
 * on. A node port without targets is the node's own port, until it has some. Pure.
 */
export function staleFlows(before: readonly Forwarding[], after: readonly Forwarding[]): DatagramFlow[] {
  return before
    .filter(({ protocol }) => protocol === "udp")
    .flatMap((old) => {
      const now = after.find(({ key }) => key === old.key);
      const left = new Set(now?.targets.map(({ ip, port }) => `${ip}:${port}`));
      const gone = old.targets.filter(({ ip, port }) => !left.has(`${ip}:${port}`));
      const places = [
        ...old.addresses.map((address) => ({ address, port: old.port })),
        ...(old.nodePort === undefined ? [] : [{ port: old.nodePort }]),
      ];
      const flows = gone.flatMap((target) => places.map((place) => ({ ...place, target })));
      const isFirst = old.targets.length === 0 && (now?.targets.length ?? 0) > 0;
      return isFirst && now?.nodePort !== undefined ? [...flows, { port: now.nodePort }] : flows;
    });
}

function keyOf({ metadata }: { readonly metadata: { readonly namespace?: string; readonly name?: string } }): string {
  return `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
}
