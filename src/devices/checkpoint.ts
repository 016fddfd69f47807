import { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import { fnv1a32 } from "../model/fnv.ts";
import type { ContainerDevices, DeviceKey } from "./device.ts";

/** What is kept across restarts: who has which devices, and which resources had plugins. */
export interface DeviceCheckpoint {
  readonly entries: readonly (DeviceKey & { readonly devices: ContainerDevices })[];
  /** Ids of healthy devices by resource. */
  readonly registered: ReadonlyMap<string, readonly string[]>;
}

/** The document, with what Go writes for empty values. */
interface Data {
  readonly PodDeviceEntries: readonly Entry[] | null;
  readonly RegisteredDevices: Readonly<Record<string, readonly string[] | null>> | null;
}

interface Entry {
  readonly PodUID: string;
  readonly ContainerName: string;
  readonly ResourceName: string;
  readonly DeviceIDs: Readonly<Record<string, readonly string[] | null>> | null;
  /** Base64 of the wire form of the plugin's answer. */
  readonly AllocResp: string | null;
}

/** Returns the document in the format of Kubernetes: its kubelet reads it, too. Pure. */
export function encodeCheckpoint({ entries, registered }: DeviceCheckpoint): string {
  const data: Data = {
    PodDeviceEntries: entries.map(({ uid, container, resource, devices }) => ({
      PodUID: uid,
      ContainerName: container,
      ResourceName: resource,
      DeviceIDs: Object.fromEntries([...devices.byNode].map(([node, ids]) => [String(node), ids])),
      AllocResp: Buffer.from(ContainerAllocateResponse.encode(devices.answer).finish()).toString("base64"),
    })),
    RegisteredDevices: Object.fromEntries(registered),
  };
  return JSON.stringify({ Data: data, Checksum: checksumOf(data) });
}

/** Reads a document of this agent or of Kubernetes. Throws if it is damaged. Pure. */
export function decodeCheckpoint(text: string): DeviceCheckpoint {
  const parsed: unknown = JSON.parse(text);
  const data = dataIn(field(parsed, "Data"));
  const [found, expected] = [field(parsed, "Checksum"), checksumOf(data)];
  if (found !== expected) throw new Error(`checksum is ${String(found)}, expected ${expected}`);
  return {
    entries: (data.PodDeviceEntries ?? []).map((entry) => ({
      uid: entry.PodUID,
      container: entry.ContainerName,
      resource: entry.ResourceName,
      devices: {
        byNode: new Map(Object.entries(entry.DeviceIDs ?? {}).map(([node, ids]) => [Number(node), ids ?? []])),
        answer: ContainerAllocateResponse.decode(Buffer.from(entry.AllocResp ?? "", "base64")),
      },
    })),
    registered: new Map(Object.entries(data.RegisteredDevices ?? {}).map(([name, ids]) => [name, ids ?? []])),
  };
}

/** 32-bit FNV-1a over the data as Go prints it. */
function checksumOf(data: Data): number {
  return fnv1a32(Buffer.from(printed(data)));
}

function printed({ PodDeviceEntries: entries, RegisteredDevices: registered }: Data): string {
  const all = entries === null ? "<nil>" : `[${entries.map(printedEntry).join(" ")}]`;
  const ids = registered === null ? "<nil>" : printedMap(registered, byText);
  return (
    `(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)${all} ` +
    `RegisteredDevices:(map[string][]string)${ids}}`
  );
}

function printedEntry(entry: Entry): string {
  const ids = entry.DeviceIDs === null ? "<nil>" : printedMap(entry.DeviceIDs, (a, b) => Number(a) - Number(b));
  const answer = entry.AllocResp === null ? "<nil>" : `[${Buffer.from(entry.AllocResp, "base64").join(" ")}]`;
  return (
    `{PodUID:(string)${entry.PodUID} ContainerName:(string)${entry.ContainerName} ` +
    `ResourceName:(string)${entry.ResourceName} DeviceIDs:(checkpoint.DevicesPerNUMA)${ids} ` +
    `AllocResp:([]uint8)${answer}}`
  );
}

function printedMap(
  map: Readonly<Record<string, readonly string[] | null>>,
  order: (a: string, b: string) => number,
): string {
  const keys = Object.keys(map).sort(order);
  const list = (ids: readonly string[] | null | undefined): string => (ids ? `[${ids.join(" ")}]` : "<nil>");
  return `map[${keys.map((key) => `${key}:${list(map[key])}`).join(" ")}]`;
}

function byText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function dataIn(value: unknown): Data {
  const entries = field(value, "PodDeviceEntries") ?? null;
  if (entries !== null && !Array.isArray(entries)) throw new Error("PodDeviceEntries is not a list");
  return {
    PodDeviceEntries: entries === null ? null : entries.map(entryIn),
    RegisteredDevices: listsIn(field(value, "RegisteredDevices")),
  };
}

function entryIn(value: unknown): Entry {
  const answer = field(value, "AllocResp") ?? null;
  return {
    PodUID: textIn(field(value, "PodUID")),
    ContainerName: textIn(field(value, "ContainerName")),
    ResourceName: textIn(field(value, "ResourceName")),
    DeviceIDs: listsIn(field(value, "DeviceIDs")),
    AllocResp: answer === null ? null : textIn(answer),
  };
}

function listsIn(value: unknown): Readonly<Record<string, readonly string[] | null>> | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== "object" || Array.isArray(value)) throw new Error("expected an object of lists");
  return Object.fromEntries(
    Object.entries(value).map(([key, list]: [string, unknown]) => {
      if (list === null) return [key, null];
      if (!Array.isArray(list)) throw new Error(`${key} is not a list`);
      return [key, list.map(textIn)];
    }),
  );
}

function textIn(value: unknown): string {
  if (typeof value !== "string") throw new Error("expected a text");
  return value;
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) throw new Error("expected an object");
  return Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}
