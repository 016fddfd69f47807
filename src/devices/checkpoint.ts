import { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import { Fnv1a32 } from "../model/fnv.ts";
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

/** Printed bytes after which `encodeInParts` lets others have their turn: about a millisecond. */
const PART_BYTES = 256 * 1024;

/** Returns the document in the format of Kubernetes: its kubelet reads it, too. Pure. */
export function encodeCheckpoint(checkpoint: DeviceCheckpoint): string {
  const parts = encodeInParts(checkpoint);
  for (;;) {
    const { done, value } = parts.next();
    if (done === true) return value;
  }
}

/**
 * Encodes in parts, and returns the document at the end: plugins may answer with megabytes in all, which take long to
 * print for the checksum. Pure.
 */
export function* encodeInParts({ entries, registered }: DeviceCheckpoint): Generator<void, string> {
  const pieces: string[] = [];
  const sum = new Printer();
  sum.print("(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)[");
  for (const [at, { uid, container, resource, devices }] of entries.entries()) {
    const entry = {
      PodUID: uid,
      ContainerName: container,
      ResourceName: resource,
      DeviceIDs: Object.fromEntries([...devices.byNode].map(([node, ids]) => [String(node), ids])),
      AllocResp: Buffer.from(ContainerAllocateResponse.encode(devices.answer).finish()).toString("base64"),
    };
    pieces.push(JSON.stringify(entry));
    if (at > 0) sum.print(" ");
    printEntry(sum, entry);
    if (sum.hasPart()) yield;
  }
  sum.print("] RegisteredDevices:(map[string][]string)map[");
  const names = [...registered.keys()].sort(byText);
  const lists: string[] = [];
  for (const [at, name] of names.entries()) {
    const ids = registered.get(name) ?? [];
    lists.push(`${JSON.stringify(name)}:${JSON.stringify(ids)}`);
    sum.print(`${at > 0 ? " " : ""}${name}:[${ids.join(" ")}]`);
    if (sum.hasPart()) yield;
  }
  sum.print("]}");
  const data = `{"PodDeviceEntries":[${pieces.join(",")}],"RegisteredDevices":{${lists.join(",")}}}`;
  return `{"Data":${data},"Checksum":${sum.value}}`;
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
function checksumOf({ PodDeviceEntries: entries, RegisteredDevices: registered }: Data): number {
  const sum = new Printer();
  sum.print("(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)");
  if (entries === null) sum.print("<nil>");
  else {
    sum.print("[");
    for (const [at, entry] of entries.entries()) {
      if (at > 0) sum.print(" ");
      printEntry(sum, entry);
    }
    sum.print("]");
  }
  const ids = registered === null ? "<nil>" : printedMap(registered, byText);
  return sum.print(` RegisteredDevices:(map[string][]string)${ids}}`).value;
}

/** What Go prints, as its hash: the text itself is never made. */
class Printer {
  private readonly hash = new Fnv1a32();
  private printed = 0;
  private part = 0;

  get value(): number {
    return this.hash.value;
  }

  print(text: string): this {
    this.add(Buffer.from(text));
    return this;
  }

  /** Bytes as decimal numbers. */
  printBytes(bytes: Uint8Array): void {
    const digits = Buffer.alloc(bytes.length * 4);
    let end = 0;
    for (const [at, byte] of bytes.entries()) {
      if (at > 0) digits[end++] = SPACE;
      if (byte >= 100) digits[end++] = ZERO + Math.floor(byte / 100);
      if (byte >= 10) digits[end++] = ZERO + (Math.floor(byte / 10) % 10);
      digits[end++] = ZERO + (byte % 10);
    }
    this.add(digits.subarray(0, end));
  }

  /** True each time that another part has been printed. */
  hasPart(): boolean {
    const part = Math.floor(this.printed / PART_BYTES);
    const isAnother = part > this.part;
    this.part = part;
    return isAnother;
  }

  private add(bytes: Uint8Array): void {
    this.printed += bytes.length;
    this.hash.add(bytes);
  }
}

const SPACE = 0x20;
const ZERO = 0x30;

function printEntry(sum: Printer, entry: Entry): void {
  const ids = entry.DeviceIDs === null ? "<nil>" : printedMap(entry.DeviceIDs, (a, b) => Number(a) - Number(b));
  sum.print(
    `{PodUID:(string)${entry.PodUID} ContainerName:(string)${entry.ContainerName} ` +
      `ResourceName:(string)${entry.ResourceName} DeviceIDs:(checkpoint.DevicesPerNUMA)${ids} AllocResp:([]uint8)`,
  );
  if (entry.AllocResp === null) sum.print("<nil>");
  else {
    sum.print("[");
    sum.printBytes(Buffer.from(entry.AllocResp, "base64"));
    sum.print("]");
  }
  sum.print("}");
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
