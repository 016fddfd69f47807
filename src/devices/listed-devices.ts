import type { Device as WireDevice } from "../adapters/devices/generated/deviceplugin.ts";
import type { Device } from "./device.ts";

/** Devices of one plugin beyond these are ignored: a list of them fills a message of the largest size. */
const MOST_DEVICES = 100_000;
/** Bytes of the longest id: it is part of the checkpoint, of pod statuses and of the pod resources API. */
const MOST_ID_BYTES = 1024;
/** NUMA nodes are numbered from 0 to 63. */
const NODES = 64;

/** Reads a plugin's list. `ignored` counts what cannot be used: ids that are empty or too long, and too many. Pure. */
export function listedDevices(list: readonly WireDevice[]): { devices: readonly Device[]; ignored: number } {
  const devices = new Map<string, Device>();
  for (const { ID: id, health, topology } of list) {
    if (devices.size >= MOST_DEVICES) break;
    if (id === "" || Buffer.byteLength(id) > MOST_ID_BYTES) continue;
    const nodes = (topology?.nodes ?? []).slice(0, NODES).map((node) => Number(node.ID));
    const known = nodes.filter((node) => node >= 0 && node < NODES);
    // Of two with one id the last counts, as in Kubernetes.
    devices.set(id, { id, isHealthy: health === "Healthy", nodes: [...new Set(known)].sort((a, b) => a - b) });
  }
  return { devices: [...devices.values()], ignored: list.length - devices.size };
}
