import type { Abortable } from "../../lib/abort.ts";
import { clip, firstBytes } from "../../lib/bounded-text.ts";
import type { ClaimDevice } from "../../model/claim-device.ts";
import { type EndedCall, GrpcChannel, method } from "../grpc/channel.ts";
import type { ReceivedMessage } from "../grpc/received-message.ts";
import * as dra from "./generated/dra.ts";
import { HealthStatus, NodeWatchResourcesRequest, NodeWatchResourcesResponse } from "./generated/dra-health.ts";

/** The services that a driver may offer, the newest first. */
export const DRA_SERVICES = ["v1.DRAPlugin", "v1beta1.DRAPlugin"] as const;
export type DraService = (typeof DRA_SERVICES)[number];

/** Fields of one message: a report on 16,384 devices has seven for each of them. */
const MOST_FIELDS = 300_000;

function methodsOf(service: DraService) {
  const path = `/k8s.io.kubelet.pkg.apis.dra.${service}`;
  return {
    prepare: {
      ...method(`${path}/NodePrepareResources`, dra.NodePrepareResourcesRequest, dra.NodePrepareResourcesResponse),
      mostFields: MOST_FIELDS,
    },
    unprepare: {
      ...method(
        `${path}/NodeUnprepareResources`,
        dra.NodeUnprepareResourcesRequest,
        dra.NodeUnprepareResourcesResponse,
      ),
      mostFields: MOST_FIELDS,
    },
  };
}

/** The methods of a driver. v1beta1 has the messages of v1 without `share_id`. */
export const draServices = {
  "v1.DRAPlugin": methodsOf("v1.DRAPlugin"),
  "v1beta1.DRAPlugin": methodsOf("v1beta1.DRAPlugin"),
};

export const draHealthService = {
  watch: {
    ...method("/v1alpha1.DRAResourceHealth/NodeWatchResources", NodeWatchResourcesRequest, NodeWatchResourcesResponse),
    mostFields: MOST_FIELDS,
  },
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

/** One message of a driver: what it reports on its devices, decoded once when it is read. */
export interface DeviceHealthReports {
  readonly bytes: number;
  read(): readonly DeviceHealthReport[];
}

/** Half of the time between two attempts of the original, in milliseconds. */
const CALL_MS = 45_000;
const MESSAGE_BYTES = 4 * 1024 * 1024;
/** More than a claim can be allocated (32 results), and than any driver passes on. */
const MOST_DEVICES = 1024;
const MOST_NAMES = 256;
/** No request, pool, device or CDI device has a longer name. */
const NAME_BYTES = 1024;
/**
 * All names of the devices of a claim together, each with the bytes of its frame: 512 for each of 128 devices. Drivers
 * send some hundred. They are kept in memory, and in a checkpoint that each change of any claim writes anew.
 */
const CLAIM_BYTES = 64 * 1024;
const NAME_FRAME_BYTES = 2;
const CONTROL_CHARACTER = /\p{Cc}/u;
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
      /** Called after each call with one answer, as Kubernetes counts them. */
      readonly onCall?: (call: EndedCall) => void;
    },
  ) {
    const channel = { hasOwnConnection: true, messageBytes: MESSAGE_BYTES };
    const ended = (call: EndedCall): void => {
      if (call.path !== draHealthService.watch.path) options.onCall?.(call);
    };
    this.channel = new GrpcChannel(options.endpoint, ended, channel);
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

  /** Reports on all devices of the driver, each received when it is asked for, until the signal aborts or the stream ends. */
  async *watchHealth({ signal }: Abortable): AsyncGenerator<DeviceHealthReports, void, undefined> {
    for await (const message of this.channel.messages(draHealthService.watch, {}, { signal, optional: true })) {
      yield { bytes: message.bytes, read: () => healthReports(message) };
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
    const { driver } = this.options;
    if (error !== "") return { error: clip(error, ERROR_BYTES), devices: [] };
    const problem = problemOf(devices);
    if (problem !== undefined) return { error: `driver ${driver} returned ${problem}`, devices: [] };
    return { error: "", devices: devices.map((device) => deviceOf(driver, device)) };
  }
}

/** What is wrong with the devices that a driver returned for a claim; undefined if they are accepted. */
function problemOf(devices: readonly dra.Device[]): string | undefined {
  const tooLong = "names that are too long or too many";
  if (devices.length > MOST_DEVICES) return `${devices.length} devices`;
  let bytes = 0;
  for (const { poolName, deviceName, shareId, requestNames, cdiDeviceIds } of devices) {
    if (requestNames.length > MOST_NAMES || cdiDeviceIds.length > MOST_NAMES) return tooLong;
    for (const name of [poolName, deviceName, shareId ?? "", ...requestNames, ...cdiDeviceIds]) {
      const nameBytes = Buffer.byteLength(name);
      if (nameBytes > NAME_BYTES) return tooLong;
      if (CONTROL_CHARACTER.test(name)) return "names with control characters";
      bytes += nameBytes + NAME_FRAME_BYTES;
    }
  }
  return bytes > CLAIM_BYTES ? `${bytes} bytes of names, more than ${CLAIM_BYTES}` : undefined;
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

function healthReports(message: ReceivedMessage<NodeWatchResourcesResponse>): readonly DeviceHealthReport[] {
  const reports = message.read().devices.slice(0, MOST_HEALTH);
  return reports.map(({ device, health, healthCheckTimeoutSeconds, message: text }) => ({
    pool: clip(device?.poolName ?? "", NAME_BYTES),
    device: clip(device?.deviceName ?? "", NAME_BYTES),
    health: healthOf(health),
    validMs: healthCheckTimeoutSeconds > 0n ? Number(healthCheckTimeoutSeconds) * 1000 : undefined,
    message: shorten(text),
  }));
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
