import type { Abortable } from "../../lib/abort.ts";
import { clip, firstBytes } from "../../lib/bounded-text.ts";
import type { ClaimDevice } from "../../model/claim-device.ts";
import { type EndedCall, GrpcChannel, method } from "../grpc/channel.ts";
import * as dra from "./generated/dra.ts";
import { HealthStatus, NodeWatchResourcesRequest, NodeWatchResourcesResponse } from "./generated/dra-health.ts";

/** The services that a driver may offer, the newest first. */
export const DRA_SERVICES = ["v1.DRAPlugin", "v1beta1.DRAPlugin"] as const;
export type DraService = (typeof DRA_SERVICES)[number];

function methodsOf(service: DraService) {
  const path = `/k8s.io.kubelet.pkg.apis.dra.${service}`;
  return {
    prepare: method(`${path}/NodePrepareResources`, dra.NodePrepareResourcesRequest, dra.NodePrepareResourcesResponse),
    unprepare: method(
      `${path}/NodeUnprepareResources`,
      dra.NodeUnprepareResourcesRequest,
      dra.NodeUnprepareResourcesResponse,
    ),
  };
}

/** The methods of a driver. v1beta1 has the messages of v1 without `share_id`. */
export const draServices = {
  "v1.DRAPlugin": methodsOf("v1.DRAPlugin"),
  "v1beta1.DRAPlugin": methodsOf("v1beta1.DRAPlugin"),
};

export const draHealthService = {
  watch: method(
    "/v1alpha1.DRAResourceHealth/NodeWatchResources",
    NodeWatchResourcesRequest,
    NodeWatchResourcesResponse,
  ),
} as const;

/** A claim as a driver is told of it. */
export interface ClaimRef {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
}

/** What a driver answered about one claim. `error` is empty if it succeeded. */
export interface PreparedClaim {
  readonly error: string;
  readonly devices: readonly ClaimDevice[];
}

/** The health of one device, as its driver reports it. */
export interface DeviceHealthReport {
  readonly pool: string;
  readonly device: string;
  readonly health: "Healthy" | "Unhealthy" | "Unknown";
  /** How long the report is valid without another, in milliseconds; undefined: the default. */
  readonly validMs: number | undefined;
  readonly message: string;
}

/** Half of the time between two attempts of the original, in milliseconds. */
const CALL_MS = 45_000;
const MESSAGE_BYTES = 4 * 1024 * 1024;
/** More than a claim can be allocated (32 results), and than any driver passes on. */
const MOST_DEVICES = 1024;
const MOST_NAMES = 256;
/** No request, pool, device or CDI device has a longer name. */
const NAME_BYTES = 1024;
const ERROR_BYTES = 4096;
/** Most devices of a driver whose health is kept. */
const MOST_HEALTH = 16_384;
const HEALTH_MESSAGE_BYTES = 1024;

/** The connection to one instance of a driver for dynamic resource allocation. */
export class DraClient {
  private readonly channel: GrpcChannel;

  constructor(
    private readonly options: {
      readonly driver: string;
      readonly endpoint: string;
      readonly service: DraService;
      readonly onCall?: (call: EndedCall) => void;
    },
  ) {
    const channel = { hasOwnConnection: true, messageBytes: MESSAGE_BYTES };
    this.channel = new GrpcChannel(options.endpoint, options.onCall, channel);
  }

  /** By UID of the claim, as the driver answered: claims may be missing or unknown. */
  async prepare(claims: readonly ClaimRef[], { signal }: Abortable): Promise<ReadonlyMap<string, PreparedClaim>> {
    const { prepare } = draServices[this.options.service];
    const answer = await this.channel.unary(prepare, { claims: [...claims] }, { signal, timeoutMs: CALL_MS });
    return new Map(Object.entries(answer.claims).map(([uid, claim]) => [uid, this.prepared(claim)]));
  }

  /** By UID of the claim: why it failed, or an empty text. */
  async unprepare(claims: readonly ClaimRef[], { signal }: Abortable): Promise<ReadonlyMap<string, string>> {
    const { unprepare } = draServices[this.options.service];
    const answer = await this.channel.unary(unprepare, { claims: [...claims] }, { signal, timeoutMs: CALL_MS });
    return new Map(Object.entries(answer.claims).map(([uid, { error }]) => [uid, clip(error, ERROR_BYTES)]));
  }

  /** Reports of all devices of the driver, until the signal aborts or the driver ends the stream. */
  async *watchHealth({ signal }: Abortable): AsyncGenerator<readonly DeviceHealthReport[], void, undefined> {
    for await (const { devices } of this.channel.stream(draHealthService.watch, {}, { signal, optional: true })) {
      yield devices.slice(0, MOST_HEALTH).map((report) => ({
        pool: clip(report.device?.poolName ?? "", NAME_BYTES),
        device: clip(report.device?.deviceName ?? "", NAME_BYTES),
        health: healthOf(report.health),
        validMs: report.healthCheckTimeoutSeconds > 0n ? Number(report.healthCheckTimeoutSeconds) * 1000 : undefined,
        message: shorten(report.message),
      }));
    }
  }

  /** Keeps the connection established; `fn` hears whether it is. */
  watchConnection(fn: (isConnected: boolean) => void): void {
    this.channel.watchConnection(fn);
  }

  close(): void {
    this.channel.close();
  }

  private prepared({ error, devices }: dra.NodePrepareResourceResponse): PreparedClaim {
    if (error !== "") return { error: clip(error, ERROR_BYTES), devices: [] };
    if (devices.length > MOST_DEVICES) return { error: `driver returned ${devices.length} devices`, devices: [] };
    const isHuge = devices.some((device) => !isSensible(device));
    if (isHuge) return { error: "driver returned names that are too long or too many", devices: [] };
    return { error: "", devices: devices.map((device) => deviceOf(this.options.driver, device)) };
  }
}

function isSensible({ poolName, deviceName, shareId, requestNames, cdiDeviceIds }: dra.Device): boolean {
  if (requestNames.length > MOST_NAMES || cdiDeviceIds.length > MOST_NAMES) return false;
  const names = [poolName, deviceName, shareId ?? "", ...requestNames, ...cdiDeviceIds];
  return names.every((name) => Buffer.byteLength(name) <= NAME_BYTES);
}

function deviceOf(driver: string, device: dra.Device): ClaimDevice {
  const { poolName, deviceName, shareId, requestNames, cdiDeviceIds } = device;
  return {
    driver,
    pool: poolName,
    device: deviceName,
    ...(shareId !== undefined && { shareId }),
    requests: requestNames,
    cdiDevices: cdiDeviceIds,
  };
}

function healthOf(health: HealthStatus): DeviceHealthReport["health"] {
  if (health === HealthStatus.HEALTHY) return "Healthy";
  return health === HealthStatus.UNHEALTHY ? "Unhealthy" : "Unknown";
}

/** As in Kubernetes: 1024 bytes, the last three of a longer one are dots. */
function shorten(message: string): string {
  if (Buffer.byteLength(message) <= HEALTH_MESSAGE_BYTES) return message;
  return `${firstBytes(message, HEALTH_MESSAGE_BYTES - 3)}...`;
}
