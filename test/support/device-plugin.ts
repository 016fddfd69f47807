import { join } from "node:path";
import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  type sendUnaryData,
} from "@grpc/grpc-js";
import * as wire from "../../src/adapters/devices/generated/deviceplugin.ts";
import { type Codec, type Method, method } from "../../src/adapters/grpc/channel.ts";

/** What a device plugin of a test offers, and how it misbehaves. */
export interface PluginScript {
  readonly resource: string;
  readonly devices: readonly { readonly id: string; readonly healthy?: boolean; readonly nodes?: readonly number[] }[];
  /** The socket's name in the directory of plugins. */
  readonly socket?: string;
  readonly version?: string;
  /** The endpoint that is registered, if it is another than the socket. */
  readonly endpoint?: string;
  readonly preStartRequired?: boolean;
  readonly prefers?: readonly string[];
  /** What Allocate answers for each device; `{id}` stands for it. */
  readonly answer?: Parameters<typeof wire.ContainerAllocateResponse.fromPartial>[0];
  /** Methods that never answer. */
  readonly hangs?: readonly string[];
  /** Methods that fail with this message. */
  readonly fails?: Readonly<Record<string, string>>;
  /** Lists that are sent one after the other, without an end. */
  readonly floods?: boolean;
}

type Unary<Q, R> = (request: Q) => R;

/** A device plugin on the real wire protocol: serves its socket, and registers on `kubelet.sock`. */
export class DevicePluginServer {
  readonly calls: string[] = [];
  /** The last request of each method. */
  readonly requests = new Map<string, unknown>();
  private readonly server = new Server();
  private readonly streams = new Set<ServerWritableStream<wire.Empty, wire.ListAndWatchResponse>>();
  private devices: PluginScript["devices"];

  constructor(
    private readonly dir: string,
    private readonly script: PluginScript,
  ) {
    this.devices = script.devices;
    const path = (name: string): string => `/v1beta1.DevicePlugin/${name}`;
    this.unary(method(path("GetDevicePluginOptions"), wire.Empty, wire.DevicePluginOptions), () => ({
      preStartRequired: script.preStartRequired === true,
      getPreferredAllocationAvailable: script.prefers !== undefined,
    }));
    this.unary(
      method(path("GetPreferredAllocation"), wire.PreferredAllocationRequest, wire.PreferredAllocationResponse),
      () => ({ containerResponses: [{ deviceIDs: [...(script.prefers ?? [])] }] }),
    );
    this.unary(method(path("Allocate"), wire.AllocateRequest, wire.AllocateResponse), ({ containerRequests }) => ({
      containerResponses: containerRequests.map(({ devicesIds }) => this.answer(devicesIds)),
    }));
    this.unary(
      method(path("PreStartContainer"), wire.PreStartContainerRequest, wire.PreStartContainerResponse),
      () => ({}),
    );
    this.server.register(
      path("ListAndWatch"),
      (call: ServerWritableStream<wire.Empty, wire.ListAndWatchResponse>) => this.watch(call),
      encoder(wire.ListAndWatchResponse),
      (bytes: Buffer) => wire.Empty.decode(bytes),
      "serverStream",
    );
  }

  get socket(): string {
    return this.script.socket ?? `${this.script.resource.replace("/", "-")}.sock`;
  }

  async serve(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const path = `unix:${join(this.dir, this.socket)}`;
      const done = (error: Error | null): void => (error === null ? resolve() : reject(error));
      this.server.bindAsync(path, ServerCredentials.createInsecure(), done);
    });
  }

  /** Serves its socket again after somebody removed it; what is connected stays. */
  async serveAgain(): Promise<void> {
    this.server.unbind(`unix:${join(this.dir, this.socket)}`);
    await this.serve();
  }

  /** Registers on the agent's socket; rejects with its answer. */
  register(): Promise<void> {
    const client = new Client(`unix:${join(this.dir, "kubelet.sock")}`, credentials.createInsecure());
    const { version = "v1beta1", resource: resourceName, endpoint = this.socket } = this.script;
    const request = { version, endpoint, resourceName, options: undefined };
    return new Promise<void>((resolve, reject) => {
      client.makeUnaryRequest(
        "/v1beta1.Registration/Register",
        encoder(wire.RegisterRequest),
        (bytes: Buffer) => wire.Empty.decode(bytes),
        request,
        new Metadata(),
        (error) => (error === null ? resolve() : reject(error)),
      );
    }).finally(() => client.close());
  }

  /** Sends another list to whoever watches. */
  list(devices: PluginScript["devices"]): void {
    this.devices = devices;
    for (const stream of this.streams) stream.write(this.message());
  }

  /** Ends every stream, as a plugin that stops. */
  stop(): void {
    this.server.forceShutdown();
  }

  private watch(call: ServerWritableStream<wire.Empty, wire.ListAndWatchResponse>): void {
    this.calls.push("ListAndWatch");
    const failure = this.script.fails?.["ListAndWatch"];
    if (failure !== undefined) {
      call.destroy(new Error(failure));
      return;
    }
    this.streams.add(call);
    call.on("close", () => this.streams.delete(call));
    call.on("error", () => undefined);
    call.write(this.message());
    if (this.script.floods === true) this.flood(call, 0);
  }

  /** As fast as the reader takes them. */
  private flood(call: ServerWritableStream<wire.Empty, wire.ListAndWatchResponse>, at: number): void {
    if (!this.streams.has(call)) return;
    const devices = [wire.Device.fromPartial({ ID: `flood-${at}`, health: "Healthy" })];
    const next = (): void => this.flood(call, at + 1);
    if (call.write({ devices })) setImmediate(next);
    else call.once("drain", next);
  }

  private message(): wire.ListAndWatchResponse {
    return {
      devices: this.devices.map(({ id, healthy = true, nodes = [] }) =>
        wire.Device.fromPartial({
          ID: id,
          health: healthy ? "Healthy" : "Unhealthy",
          ...(nodes.length > 0 && { topology: { nodes: nodes.map((ID) => ({ ID })) } }),
        }),
      ),
    };
  }

  private answer(ids: readonly string[]): wire.ContainerAllocateResponse {
    const all = ids.map((id) => JSON.parse(JSON.stringify(this.script.answer ?? {}).replaceAll("{id}", id)) as object);
    const merged = all.map((one) => wire.ContainerAllocateResponse.fromPartial(one));
    return {
      envs: Object.assign({}, ...merged.map(({ envs }) => envs)) as Record<string, string>,
      annotations: Object.assign({}, ...merged.map(({ annotations }) => annotations)) as Record<string, string>,
      mounts: merged.flatMap(({ mounts }) => mounts),
      devices: merged.flatMap(({ devices }) => devices),
      cdiDevices: merged.flatMap(({ cdiDevices }) => cdiDevices),
    };
  }

  private unary<Q, R>({ path, request, response }: Method<Q, R>, answer: Unary<Q, R>): void {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const handle = (call: { request: Q }, done: sendUnaryData<R>): void => {
      this.calls.push(name);
      this.requests.set(name, call.request);
      if (this.script.hangs?.includes(name)) return;
      const failure = this.script.fails?.[name];
      if (failure !== undefined) done({ code: 2, details: failure });
      else done(null, answer(call.request));
    };
    this.server.register(path, handle, encoder(response), (bytes: Buffer) => request.decode(bytes), "unary");
  }
}

function encoder<T>(codec: Codec<T>): (message: T) => Buffer {
  return (message) => Buffer.from(codec.encode(message).finish());
}
