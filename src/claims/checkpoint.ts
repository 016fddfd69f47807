import { crc32 } from "node:zlib";
import type { ClaimDevice } from "../model/claim-device.ts";
import type { ClaimRecord } from "./claim-record.ts";

/** The file `dra_manager_state` in Kubernetes' format: a JSON text and its CRC-32. */
export interface ClaimCheckpoint {
  readonly Data: string;
  readonly Checksum: number;
}

const TYPE = { kind: "DRACheckpoint", apiVersion: "checkpoint.dra.kubelet.k8s.io/v1" } as const;

/** Encodes claims, in a stable order. Pure. */
export function encodeClaims(claims: Iterable<ClaimRecord>): ClaimCheckpoint {
  const Data = JSON.stringify({ ...TYPE, ClaimInfoStateList: [...claims].map(encodeClaim) });
  return { Data, Checksum: crc32(Data) };
}

/** The bytes that a claim adds to the file, and how many of them are the devices of each driver. */
export interface ClaimSize {
  readonly bytes: number;
  readonly drivers: ReadonlyMap<string, number>;
}

/** Measures a claim without writing it. Pure. */
export function sizeOfClaim(claim: ClaimRecord): ClaimSize {
  const drivers = new Map([...claim.drivers].map(([driver, devices]) => [driver, sizeOf(devices.map(encode))]));
  return { bytes: sizeOf(encodeClaim(claim)) + ",".length, drivers };
}

/** Bytes of a value in the file: as JSON in a text that is JSON itself. */
function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(JSON.stringify(value))) - '""'.length;
}

function encodeClaim({ uid, name, namespace, pods, drivers }: ClaimRecord): unknown {
  return {
    ClaimUID: uid,
    ClaimName: name,
    Namespace: namespace,
    PodUIDs: Object.fromEntries([...pods].sort().map((pod) => [pod, {}])),
    DriverState: Object.fromEntries(
      [...drivers].map(([driver, devices]) => [driver, { Devices: devices.map(encode) }]),
    ),
  };
}

/**
 * Decodes a checkpoint of this agent or of the original; undefined if it is damaged, or of another version: its claims
 * would be lost without notice. None of its claims counts as prepared.
 */
export function decodeClaims(document: unknown): readonly ClaimRecord[] | undefined {
  const { Data, Checksum } = fieldsOf(document);
  if (typeof Data !== "string" || Checksum !== crc32(Data)) return undefined;
  try {
    const { kind, apiVersion, ClaimInfoStateList: list } = fieldsOf(JSON.parse(Data));
    if (kind !== TYPE.kind || apiVersion !== TYPE.apiVersion) return undefined;
    // The original writes an empty list as null.
    if (list === null) return [];
    return Array.isArray(list) ? list.map(decodeClaim) : undefined;
  } catch {
    return undefined;
  }
}

function encode(device: ClaimDevice): unknown {
  return {
    PoolName: device.pool,
    DeviceName: device.device,
    ShareID: device.shareId ?? null,
    RequestNames: device.requests,
    CDIDeviceIDs: device.cdiDevices,
  };
}

function decodeClaim(value: unknown): ClaimRecord {
  const claim = fieldsOf(value);
  const drivers = Object.entries(fieldsOf(claim["DriverState"])).map(([driver, state]) => {
    const { Devices: devices } = fieldsOf(state);
    return [driver, (Array.isArray(devices) ? devices : []).map((device) => decodeDevice(driver, device))] as const;
  });
  return {
    uid: text(claim["ClaimUID"]),
    name: text(claim["ClaimName"]),
    namespace: text(claim["Namespace"]),
    pods: new Set(Object.keys(fieldsOf(claim["PodUIDs"]))),
    drivers: new Map(drivers),
    isPrepared: false,
  };
}

function decodeDevice(driver: string, value: unknown): ClaimDevice {
  const device = fieldsOf(value);
  const shareId = device["ShareID"];
  return {
    driver,
    pool: text(device["PoolName"]),
    device: text(device["DeviceName"]),
    ...(typeof shareId === "string" && { shareId }),
    requests: texts(device["RequestNames"]),
    cdiDevices: texts(device["CDIDeviceIDs"]),
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  // reason: every field is checked where it is read
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string {
  if (typeof value !== "string") throw new Error("not a text");
  return value;
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(text) : [];
}
