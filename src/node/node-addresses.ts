import { addressesOf } from "../adapters/host/node-facts.ts";
import { type AgentOptions, ConfigurationError } from "../config/index.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { type Live, LiveValue } from "../lib/live.ts";
import { canonicalJson } from "../model/canonical-json.ts";
import type { NodeAddress, NodeStatus } from "../model/generated/types.ts";
import { type AddressFacts, nodeAddresses } from "./addresses.ts";

/** DNS is asked at most this often, in milliseconds: a starting node computes its status every 100 ms. */
const RESOLVE_EVERY_MS = 5000;
/** A report waits no longer for DNS, in milliseconds: a machine without a DNS server has to start, too. */
const RESOLVE_LIMIT_MS = 1000;

export interface NodeAddressesDeps {
  readonly clock: Clock;
  /** The machine's own addresses, the preferred one first. */
  own(): readonly string[];
  /** What DNS answers for the node's name; empty if it cannot be resolved. */
  resolve(name: string): Promise<readonly string[]>;
}

/**
 * The addresses in the node status. They are computed anew for each report, so that a changed interface or DNS entry is
 * reported; with an external cloud provider those that the cloud controller manager has set take precedence.
 */
export class NodeAddresses implements Live<readonly NodeAddress[]> {
  private readonly value = new LiveValue<readonly NodeAddress[]>([]);
  /** The last DNS answer, or the one that is awaited: a slow server gets one question at a time. */
  private resolved: { readonly at: number; readonly answer: Promise<readonly string[]> } | undefined;
  /** What counts while an answer takes long. */
  private lastAnswer: readonly string[] = [];

  constructor(
    private readonly deps: NodeAddressesDeps,
    private readonly options: Pick<AddressFacts, "nodeName" | "nodeIp" | "isExternalCloud">,
  ) {}

  /** The addresses of the last report. */
  get current(): readonly NodeAddress[] {
    return this.value.current;
  }

  onChange(...given: Parameters<Live<readonly NodeAddress[]>["onChange"]>): void {
    this.value.onChange(...given);
  }

  /** Computes the addresses; `previous` is the status that the server has. Rejects if `--node-ip` cannot be used. */
  async refresh(previous?: NodeStatus): Promise<readonly NodeAddress[]> {
    const { nodeIp, isExternalCloud } = this.options;
    const known = previous?.addresses ?? [];
    const found =
      isExternalCloud && known.length > 0
        ? known
        : nodeAddresses({
            ...this.options,
            own: this.deps.own(),
            resolved: nodeIp === "" ? await this.resolveSoon() : [],
          });
    if (canonicalJson(found) !== canonicalJson(this.current)) this.value.set(found);
    return found;
  }

  /** The answer of DNS, or the one before if it takes long: then it is part of a later report. */
  private resolveSoon(): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      const timer = this.deps.clock.after(RESOLVE_LIMIT_MS, () => resolve(this.lastAnswer));
      this.resolve()
        .finally(() => timer.cancel())
        .then((answer) => resolve((this.lastAnswer = answer)), reject);
    });
  }

  private resolve(): Promise<readonly string[]> {
    const now = this.deps.clock.now().mono;
    if (this.resolved !== undefined && now - this.resolved.at < RESOLVE_EVERY_MS) return this.resolved.answer;
    const answer = this.deps.resolve(this.options.nodeName);
    // Until it is answered no other question is asked.
    this.resolved = { at: Number.POSITIVE_INFINITY, answer };
    const answered = (): void => {
      this.resolved = { at: this.deps.clock.now().mono, answer };
    };
    answer.then(answered, answered);
    return answer;
  }
}

/** Builds the addresses of this machine. Rejects with a `ConfigurationError` if `--node-ip` cannot be used. */
export async function determineNodeAddresses(
  { nodeIP, cloudProvider }: Pick<AgentOptions, "nodeIP" | "cloudProvider">,
  { nodeName, own, clock }: Pick<NodeAddressesDeps, "own" | "clock"> & { readonly nodeName: string },
): Promise<NodeAddresses> {
  const options = { nodeName, nodeIp: nodeIP, isExternalCloud: cloudProvider === "external" };
  const addresses = new NodeAddresses({ own, clock, resolve: addressesOf }, options);
  try {
    await addresses.refresh();
    return addresses;
  } catch (error) {
    throw new ConfigurationError("Impossible", messageOf(error));
  }
}

/**
 * The host IPs of pods, as in Kubernetes: the first InternalIP, else the first ExternalIP, and the first address of the
 * other family. The first one tells the node's primary family. Pure.
 */
export function hostIpsOf(addresses: readonly NodeAddress[]): readonly string[] {
  const of = (wanted: string): string[] =>
    addresses.filter(({ type }) => type === wanted).map(({ address }) => address);
  const all = [...of("InternalIP"), ...of("ExternalIP")];
  const [first] = all;
  if (first === undefined) return [];
  const second = all.find((ip) => ip.includes(":") !== first.includes(":"));
  return second === undefined ? [first] : [first, second];
}
