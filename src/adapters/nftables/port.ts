import type { Abortable } from "../../lib/abort.ts";
import { CodedError } from "../../lib/errors.ts";

export type Protocol = "tcp" | "udp" | "sctp";

/** An address and a port that connections are sent to. */
export interface Target {
  readonly ip: string;
  readonly port: number;
}

/** One port of one service: what is sent there goes to one of its targets. IPv4 only. */
export interface Forwarding {
  /** Identifies it: the service, the port's name and protocol. */
  readonly key: string;
  readonly protocol: Protocol;
  /** Addresses of the service. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** The port on each address of the node but the loopback ones. */
  readonly nodePort?: number;
  /** None: connections to addresses of the service range are rejected. */
  readonly targets: readonly Target[];
  /** How long a client stays with its target after its last new connection, in seconds. */
  readonly affinitySeconds?: number;
}

export interface ForwardingChange {
  readonly set: readonly Forwarding[];
  /** By key; unknown ones are ignored. */
  readonly remove: readonly string[];
}

/**
 * The kernel's table of forwardings. Each write is one transaction, never touches connections that are open, and keeps
 * which client belongs to which target. `test/contract/forwarding-suite.ts` is passed by the real one and the fake.
 * Every method may reject with `NetfilterError`, or with the signal's reason.
 */
export interface ForwardingTable {
  /** Makes the table hold exactly these; writes nothing if it does. True if it wrote. */
  replace(forwardings: readonly Forwarding[], options: Abortable): Promise<boolean>;
  /** Changes a few; costs work for these only. Rejects with `Damaged` if somebody else changed the table. */
  update(change: ForwardingChange, options: Abortable): Promise<void>;
  /** True if the kernel holds what was written last. */
  isIntact(options: Abortable): Promise<boolean>;
}

/** Connections that the kernel remembers. */
export interface ConnectionTable {
  /** Ends what the kernel remembers of a datagram flow from an address (or node port) to a target. May be repeated. */
  forget(flow: DatagramFlow, options: Abortable): Promise<void>;
}

export interface DatagramFlow {
  /** Missing: any address, which is for node ports. */
  readonly address?: string;
  readonly port: number;
  /** Missing: whatever they were sent to. */
  readonly target?: Target;
}

/** `Missing`: there is no such program. `Damaged`: what was to be changed is not there any more. */
export class NetfilterError extends CodedError<"Missing" | "Damaged" | "Refused"> {}
