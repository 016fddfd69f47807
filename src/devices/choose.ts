import { hasNode, type NumaMask } from "../model/topology.ts";
import type { Device } from "./device.ts";

/** What a choice of devices for one container depends on. */
export interface ChoiceFacts {
  readonly resource: string;
  /** How many the container needs. */
  readonly required: number;
  /** Ids that earlier init containers of the pod have and do not need any more. */
  readonly reusable: readonly string[];
  /** Returns the healthy ids that no container has, in the plugin's order. */
  available(): readonly string[];
  readonly devices: ReadonlyMap<string, Device>;
  /** NUMA nodes that the devices should be attached to; undefined: any. */
  readonly affinity: NumaMask | undefined;
  /** What the plugin prefers; undefined as long as it was not asked. */
  readonly preferred?: readonly string[] | undefined;
}

export type Choice =
  | { readonly kind: "chosen"; readonly ids: readonly string[] }
  | { readonly kind: "short"; readonly why: string }
  /** The plugin may choose: of `offered`, with all of `included`. */
  | { readonly kind: "open"; readonly offered: readonly string[]; readonly included: readonly string[] };

/**
 * Chooses devices in the order of Kubernetes: those of earlier init containers, those of the wanted NUMA nodes, what
 * the plugin prefers, others, and last those without a NUMA node. Pure.
 */
export function chooseDevices(facts: ChoiceFacts): Choice {
  const { required, resource, preferred } = facts;
  const reused = facts.reusable.length === required ? facts.reusable : facts.reusable.slice(0, required);
  const needed = required - reused.length;
  if (needed === 0) return { kind: "chosen", ids: reused };
  const available = facts.available();
  if (available.length < needed) {
    const numbers = `Requested: ${needed}, Available: ${available.length}`;
    return { kind: "short", why: `requested number of devices unavailable for ${resource}. ${numbers}` };
  }
  const { aligned, unaligned, rest } = byAffinity(available, facts);
  // What is aligned must be used before anything else: the affinity was granted for it.
  const pool = needed < aligned.length ? aligned : [...unaligned, ...rest];
  const taken = needed < aligned.length ? reused : [...reused, ...aligned];
  if (taken.length === required) return { kind: "chosen", ids: taken };
  if (preferred === undefined) return { kind: "open", offered: [...new Set([...taken, ...pool])], included: taken };
  const known = new Set(pool);
  const ids = new Set([...taken, ...preferred.filter((id) => known.has(id)), ...pool]);
  return { kind: "chosen", ids: [...ids].slice(0, required) };
}

/** Splits what is available: attached to the wanted NUMA nodes, to others, to none. Without an affinity all are `rest`. */
function byAffinity(
  available: readonly string[],
  { devices, affinity }: ChoiceFacts,
): Record<"aligned" | "unaligned" | "rest", string[]> {
  const groups: Record<"aligned" | "unaligned" | "rest", string[]> = { aligned: [], unaligned: [], rest: [] };
  for (const id of available) {
    const nodes = devices.get(id)?.nodes ?? [];
    if (affinity === undefined || nodes.length === 0) groups.rest.push(id);
    else if (nodes.some((node) => hasNode(affinity, node))) groups.aligned.push(id);
    else groups.unaligned.push(id);
  }
  return groups;
}
