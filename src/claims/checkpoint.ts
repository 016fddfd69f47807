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
  const ClaimInfoStateList = [...claims].map(({ uid, name, namespace, pods, drivers }) => ({
    ClaimUID: uid,
    ClaimName: name,
    Namespace: namespace,
    PodUIDs: Object.fromEntries([...pods].sort().map((pod) => [pod, {}])),
    DriverState: Object.fromEntries(
      [...drivers].map(([driver, devices]) => [driver, { Devices: devices.map(encode) }]),
    ),
  }));
  const Data = JSON.stringify({ ...TYPE, ClaimInfoStateList });
  return { Data, Checksum: crc32(Data) };
}

/** Decodes a checkpoint of this agent or of the original; undefined if it is damaged. None of its claims counts as prepared. */
export function decodeClaims(document: unknown): readonly ClaimRecord[] | undefined {
  const { Data, Checksum } = fieldsOf(document);
  if (typeof Data !== "string" || Checksum !== crc32(Data)) return undefined;
  try {
    const { ClaimInfoStateList: list } = fieldsOf(JSON.parse(Data));
    return (Array.isArray(list) ? list : []).map(decodeClaim);
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
