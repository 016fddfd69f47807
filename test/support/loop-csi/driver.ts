/**
 * A CSI driver whose volumes are files with ext4 or XFS on loop devices: `driver.ts OPTIONS`, as JSON. It serves the
 * official protocol, registers itself, does what a file says (faults, hanging calls), and writes each call to another.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  type Client,
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  status,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import * as csi from "../../../src/adapters/plugins/generated/csi.ts";
import * as registration from "../../../src/adapters/plugins/generated/registration.ts";
import { LoopController } from "./controller-service.ts";
import { LoopNode } from "./node-service.ts";
import { LoopVolumes, Refusal } from "./volumes.ts";

export interface LoopDriverOptions {
  readonly name: string;
  readonly socket: string;
  /** Undefined: it does not register itself. */
  readonly registration?: string;
  /** Where the volumes are. */
  readonly storage: string;
  /** Each call is a line here. */
  readonly calls: string;
  /** `LoopBehaviour`, read at each call. */
  readonly behaviour: string;
}

/** What the driver does instead of its work. */
export interface LoopBehaviour {
  /** By method: the codes that its calls are answered with; `afterWork`: when the work is done. */
  readonly faults?: Readonly<Record<string, { readonly code: number; readonly afterWork?: boolean }>>;
  /** Methods whose calls hang until they are not on the list any more; the others when their work is done. */
  readonly hanging?: readonly string[];
  readonly hangingAfterWork?: readonly string[];
  /** By volume: the code that its first call of each method is answered with, in this life of the driver. */
  readonly firstCalls?: Readonly<Record<string, { readonly code: number; readonly afterWork?: boolean }>>;
  /** It ends, as if it was killed, when it is called so, before or after the work. */
  readonly dies?: { readonly method: string; readonly afterWork: boolean };
  /** The share of calls, from 0 to 1, that fail with any code, before or after the work. */
  readonly chaos?: number;
}

const options = JSON.parse(process.argv[2] ?? "{}") as LoopDriverOptions;
const volumes = new LoopVolumes(options.storage);
const node = new LoopNode(volumes);
const controller = new LoopController(volumes, options.name);
const POLL_MS = 50;
/** What a driver may answer at any time: every code that is no success. */
const CODES = Array.from({ length: 16 }, (_, at) => at + 1);

const note = (line: object): void => appendFileSync(options.calls, `${JSON.stringify(line)}\n`);
const behaviour = (): LoopBehaviour =>
  existsSync(options.behaviour) ? (JSON.parse(readFileSync(options.behaviour, "utf8")) as LoopBehaviour) : {};

type Answer = (error: { code: number; details: string } | null, value?: unknown) => void;

const inFlight = new Map<string, number>();
/** Methods and volumes that were called. */
const called = new Set<string>();

const hangs = async (is: (now: LoopBehaviour) => boolean | undefined): Promise<void> => {
  while (is(behaviour()) === true) await new Promise((go) => setTimeout(go, POLL_MS));
};

/** `onGone`: the caller has given up, or is dead. Then it may call again, and this one counts no more. */
interface Called {
  readonly method: string;
  readonly request: object;
  onGone(then: () => void): void;
}

async function answer({ method, request, onGone }: Called, work: () => object): Promise<object> {
  const { volumeId = "", targetPath, stagingTargetPath } = request as Readonly<Record<string, string>>;
  const key = `${method} ${volumeId}`;
  const count = (inFlight.get(key) ?? 0) + 1;
  inFlight.set(key, count);
  let isCounted = true;
  const end = (): void => {
    if (isCounted) inFlight.set(key, (inFlight.get(key) ?? 1) - 1);
    isCounted = false;
  };
  onGone(end);
  let code = 0;
  note({ method: `${method} began`, volumeId });
  try {
    await hangs(({ hanging }) => hanging?.includes(method));
    const { faults, dies, chaos = 0, firstCalls } = behaviour();
    const isHit = Math.random() < chaos;
    const isFirst = !called.has(key);
    called.add(key);
    const fault =
      faults?.[method] ??
      (isFirst ? firstCalls?.[volumeId] : undefined) ??
      (isHit
        ? { code: CODES[Math.floor(Math.random() * CODES.length)] ?? 2, afterWork: Math.random() < 0.5 }
        : undefined);
    if (dies?.method === method && !dies.afterWork) process.kill(process.pid, "SIGKILL");
    if (fault !== undefined && fault.afterWork !== true) throw new Refusal(fault.code, "as it was told");
    const result = work();
    note({ method: `${method} worked`, volumeId });
    await hangs(({ hangingAfterWork }) => hangingAfterWork?.includes(method));
    if (dies?.method === method) process.kill(process.pid, "SIGKILL");
    if (fault !== undefined) throw new Refusal(fault.code, "as it was told, with its work done");
    return result;
  } catch (error) {
    code = error instanceof Refusal ? error.code : status.INTERNAL;
    throw error instanceof Refusal ? error : new Refusal(status.INTERNAL, String(error));
  } finally {
    end();
    note({
      method,
      volumeId,
      code,
      inFlight: count,
      ...(targetPath && { targetPath }),
      ...(stagingTargetPath && { stagingTargetPath }),
    });
  }
}

function handler(method: string, work: (request: never) => object) {
  return (call: ServerUnaryCall<object, object>, reply: Answer): void => {
    const { request } = call;
    answer({ method, request, onGone: (then) => call.on("cancelled", then) }, () => work(request as never)).then(
      (value) => reply(null, value),
      (error: Refusal) => reply({ code: error.code, details: error.message }),
    );
  };
}

interface Codec {
  encode(message: unknown): { finish(): Uint8Array };
  decode(input: Uint8Array): unknown;
  fromPartial(object: object): unknown;
}

/** A service by the codecs that the agent itself is made with. */
function generated(service: string, methods: Readonly<Record<string, readonly [Codec, Codec]>>): ServiceDefinition {
  const bytes = (codec: Codec, value: unknown): Buffer =>
    Buffer.from(codec.encode(codec.fromPartial(value as object)).finish());
  return Object.fromEntries(
    Object.entries(methods).map(([name, [request, response]]) => [
      name,
      {
        path: `/${service}/${name}`,
        requestStream: false,
        responseStream: false,
        requestSerialize: (value: unknown) => bytes(request, value),
        requestDeserialize: (buffer: Buffer) => request.decode(buffer),
        responseSerialize: (value: unknown) => bytes(response, value),
        responseDeserialize: (buffer: Buffer) => response.decode(buffer),
      },
    ]),
  );
}

const NODE = {
  NodeStageVolume: [csi.NodeStageVolumeRequest, csi.NodeStageVolumeResponse],
  NodeUnstageVolume: [csi.NodeUnstageVolumeRequest, csi.NodeUnstageVolumeResponse],
  NodePublishVolume: [csi.NodePublishVolumeRequest, csi.NodePublishVolumeResponse],
  NodeUnpublishVolume: [csi.NodeUnpublishVolumeRequest, csi.NodeUnpublishVolumeResponse],
  NodeExpandVolume: [csi.NodeExpandVolumeRequest, csi.NodeExpandVolumeResponse],
  NodeGetVolumeStats: [csi.NodeGetVolumeStatsRequest, csi.NodeGetVolumeStatsResponse],
  NodeGetCapabilities: [csi.NodeGetCapabilitiesRequest, csi.NodeGetCapabilitiesResponse],
  NodeGetInfo: [csi.NodeGetInfoRequest, csi.NodeGetInfoResponse],
} as unknown as Readonly<Record<string, readonly [Codec, Codec]>>; // reason: each is only used with its own messages

const REGISTRATION = {
  GetInfo: [registration.InfoRequest, registration.PluginInfo],
  NotifyRegistrationStatus: [registration.RegistrationStatus, registration.RegistrationStatusResponse],
} as unknown as Readonly<Record<string, readonly [Codec, Codec]>>; // reason: as above

const { STAGE_UNSTAGE_VOLUME, GET_VOLUME_STATS, EXPAND_VOLUME } = csi.NodeServiceCapability_RPC_Type;
const work: Readonly<Record<string, (request: never) => object>> = {
  NodeStageVolume: (request: csi.NodeStageVolumeRequest) => node.stage(request),
  NodeUnstageVolume: (request: csi.NodeUnstageVolumeRequest) => node.unstage(request),
  NodePublishVolume: (request: csi.NodePublishVolumeRequest) => node.publish(request),
  NodeUnpublishVolume: (request: csi.NodeUnpublishVolumeRequest) => node.unpublish(request),
  NodeExpandVolume: (request: csi.NodeExpandVolumeRequest) => node.expand(request),
  NodeGetVolumeStats: (request: csi.NodeGetVolumeStatsRequest) => node.stats(request),
  NodeGetCapabilities: () => ({
    capabilities: [STAGE_UNSTAGE_VOLUME, GET_VOLUME_STATS, EXPAND_VOLUME].map((type) => ({ rpc: { type } })),
  }),
  NodeGetInfo: () => ({ nodeId: "loop-node", maxVolumesPerNode: 0n }),
  GetInfo: () => ({
    type: "CSIPlugin",
    name: options.name,
    endpoint: options.socket,
    supportedVersions: ["1.0.0"],
  }),
  NotifyRegistrationStatus: () => ({}),
};

const server = new Server();
const own = (methods: Readonly<Record<string, unknown>>): never =>
  Object.fromEntries(Object.keys(methods).map((name) => [name, handler(name, work[name] ?? (() => ({})))])) as never; // reason: grpc-js types handlers by generated services
server.addService(generated("csi.v1.Node", NODE), own(NODE));
if (options.registration !== undefined) {
  server.addService(generated("pluginregistration.Registration", REGISTRATION), own(REGISTRATION));
}
const loaded = loadPackageDefinition(
  loadSync(join(import.meta.dirname, "controller.proto"), { longs: Number, defaults: true, oneofs: false }),
) as unknown as { csi: { v1: Readonly<Record<string, typeof Client & { service: ServiceDefinition }>> } }; // reason: what the file declares
for (const [name, methods] of [
  ["Identity", controller.identity],
  ["Controller", controller.methods],
] as const) {
  const { service } = loaded.csi.v1[name] ?? {};
  const handlers = Object.entries(methods).map(([method, one]) => [method, handler(method, one)]);
  if (service !== undefined) server.addService(service, Object.fromEntries(handlers) as never); // reason: as above
}
for (const path of [options.socket, ...(options.registration === undefined ? [] : [options.registration])]) {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}
note({ method: "started" });
