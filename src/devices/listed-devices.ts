import type { Device as WireDevice } from "../adapters/devices/generated/deviceplugin.ts";
import { type Device, MOST_NODES } from "./device.ts";

/** Devices of one plugin beyond these are ignored: a list of them fills a message of the largest size. */
const MOST_DEVICES = 100_000;
/** Bytes of the longest id: it is part of the checkpoint, of pod statuses and of the pod resources API. */
const MOST_ID_BYTES = 1024;

/** Reads a plugin's list. `ignored` counts what cannot be used: ids that are empty or too long, and too many. Pure. */
export function listedDevices(list: readonly WireDevice[]): { devices: readonly Device[]; ignored: number } {
  const devices = new Map<string, Device>();
  const nodesOf = nodeReader();
  for (const { ID: id, health, topology } of list) {
    if (devices.size >= MOST_DEVICES) break;
    if (id === "" || Buffer.byteLength(id) > MOST_ID_BYTES) continue;
    // Of two with one id the last counts, as in Kubernetes.
    devices.set(id, { id, isHealthy: health === "Healthy", nodes: nodesOf(topology?.nodes ?? []) });
  }
  return { devices: [...devices.values()], ignored: list.length - devices.size };
}

/** Returns a function that reads NUMA nodes in ascending order, each once; devices of the same nodes share the list. */
function nodeReader(): (nodes: readonly { readonly ID: bigint }[]) => readonly number[] {
  const known = new Map<string, readonly number[]>();
  return (nodes) => {
    // Bits of nodes 0-31 and 32-63: a list may have 100,000 devices of several nodes each.
    let [low, high] = [0, 0];
    for (let at = 0; at < nodes.length && at < MOST_NODES; at++) {
      const node = Number(nodes[at]?.ID ?? -1);
      if (node < 0 || node >= MOST_NODES) continue;
      if (node < 32) low |= 1 << node;
      else high |= 1 << (node - 32);
    }
    const key = `${low},${high}`;
    const found = known.get(key) ?? [...nodesIn(low, 0), ...nodesIn(high, 32)];
    known.set(key, found);
    return found;
  };
}

function nodesIn(bits: number, from: number): number[] {
  const nodes: number[] = [];
  for (let bit = 0; bit < 32; bit++) if ((bits & (1 << bit)) !== 0) nodes.push(from + bit);
  return nodes;
}
