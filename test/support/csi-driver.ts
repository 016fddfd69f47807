import { execFileSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmdirSync, rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { Server, ServerCredentials, type ServiceDefinition, status } from "@grpc/grpc-js";
import * as csi from "../../src/adapters/plugins/generated/csi.ts";
import * as registration from "../../src/adapters/plugins/generated/registration.ts";

interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(input: Uint8Array): T;
  fromPartial(object: object): T;
}

/** What one call of the driver was asked. */
export interface DriverCall {
  readonly method: string;
  readonly request: object;
}

export interface CsiDriverOptions {
  readonly name: string;
  /** The node's root directory of the agent. */
  readonly root: string;
  /** Numbers of NodeServiceCapability.RPC.Type. */
  readonly capabilities?: readonly number[];
  readonly topology?: Readonly<Record<string, string>>;
  readonly maxVolumes?: number;
}

/**
 * A CSI driver on the real wire protocol that really mounts: a directory per volume on the host, bind-mounted when it is
 * staged and again when it is published. A block volume is a loop device on a file.
 */
export class TestCsiDriver {
  readonly calls: DriverCall[] = [];
  /** The next answers of a method are these codes instead. */
  readonly faults: { method: string; code: number; message: string; afterWork?: boolean }[] = [];
  /** Calls that are to hang, until `release`. */
  private readonly hanging = new Map<string, (() => void)[]>();
  /** How many volumes it says that it can attach. */
  maxVolumes: number;
  private server: Server | undefined;
  private readonly loops = new Map<string, string>();

  constructor(
    private readonly options: CsiDriverOptions,
    private readonly storage: string,
  ) {
    this.maxVolumes = options.maxVolumes ?? 0;
    mkdirSync(storage, { recursive: true });
  }

  private get registrationSocket(): string {
    return join(this.options.root, "plugins_registry", `${this.options.name}-reg.sock`);
  }

  private get socket(): string {
    return join(this.options.root, "plugins", this.options.name, "csi.sock");
  }

  /** Serves, and introduces itself by its socket. */
  async start(): Promise<void> {
    mkdirSync(join(this.options.root, "plugins", this.options.name), { recursive: true });
    mkdirSync(join(this.options.root, "plugins_registry"), { recursive: true });
    const server = new Server();
    this.server = server;
    const { name } = this.options;
    this.serve(server, "/pluginregistration.Registration", {
      GetInfo: served(registration.InfoRequest, registration.PluginInfo, () => ({
        type: "CSIPlugin",
        name,
        endpoint: this.socket,
        supportedVersions: ["1.0.0"],
      })),
      NotifyRegistrationStatus: served(
        registration.RegistrationStatus,
        registration.RegistrationStatusResponse,
        () => ({}),
      ),
    });
    this.serve(server, "/csi.v1.Node", this.nodeMethods());
    for (const path of [this.socket, this.registrationSocket]) {
      rmSync(path, { force: true });
      await new Promise<void>((resolve, reject) => {
        server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
          error === null ? resolve() : reject(error),
        );
      });
    }
  }

  /** Ends as if it was killed: mounts stay. */
  stop(): void {
    this.server?.forceShutdown();
    this.server = undefined;
    for (const path of [this.socket, this.registrationSocket]) rmSync(path, { force: true });
  }

  /** Lets the next call of a method wait until `release`. */
  hang(method: string): void {
    this.hanging.set(method, []);
  }

  release(method: string): void {
    for (const go of this.hanging.get(method) ?? []) go();
    this.hanging.delete(method);
  }

  asked(method: string): readonly object[] {
    return this.calls.filter((call) => call.method === method).map(({ request }) => request);
  }

  private nodeMethods(): Methods {
    const { capabilities = [], topology } = this.options;
    return {
      NodeGetInfo: served(csi.NodeGetInfoRequest, csi.NodeGetInfoResponse, () => ({
        nodeId: "node-of-driver",
        maxVolumesPerNode: BigInt(this.maxVolumes),
        ...(topology && { accessibleTopology: { segments: topology } }),
      })),
      NodeGetCapabilities: served(csi.NodeGetCapabilitiesRequest, csi.NodeGetCapabilitiesResponse, () => ({
        capabilities: capabilities.map((type) => ({ rpc: { type } })),
      })),
      NodeStageVolume: served(
        csi.NodeStageVolumeRequest,
        csi.NodeStageVolumeResponse,
        (request: csi.NodeStageVolumeRequest) => {
          if (request.volumeCapability?.block === undefined) {
            bind(this.directory(request.volumeId), request.stagingTargetPath);
          }
          return {};
        },
      ),
      NodeUnstageVolume: served(
        csi.NodeUnstageVolumeRequest,
        csi.NodeUnstageVolumeResponse,
        (request: csi.NodeUnstageVolumeRequest) => {
          unbind(request.stagingTargetPath);
          return {};
        },
      ),
      NodePublishVolume: served(
        csi.NodePublishVolumeRequest,
        csi.NodePublishVolumeResponse,
        (request: csi.NodePublishVolumeRequest) => {
          this.publish(request);
          return {};
        },
      ),
      NodeUnpublishVolume: served(
        csi.NodeUnpublishVolumeRequest,
        csi.NodeUnpublishVolumeResponse,
        (request: csi.NodeUnpublishVolumeRequest) => {
          unbind(request.targetPath);
          this.detachLoop(request.volumeId);
          return {};
        },
      ),
    };
  }

  private publish({ volumeId, volumeCapability, targetPath, stagingTargetPath }: csi.NodePublishVolumeRequest): void {
    if (volumeCapability?.block !== undefined) {
      const device = this.attachLoop(volumeId);
      if (!existsSync(targetPath)) closeSync(openSync(targetPath, "w"));
      if (!isMounted(targetPath)) execFileSync("mount", ["--bind", device, targetPath]);
      return;
    }
    bind(stagingTargetPath === "" ? this.directory(volumeId) : stagingTargetPath, targetPath);
  }

  /** Where the files of a volume really are. */
  directory(volumeId: string): string {
    const path = join(this.storage, volumeId);
    mkdirSync(path, { recursive: true });
    return path;
  }

  private attachLoop(volumeId: string): string {
    const known = this.loops.get(volumeId);
    if (known !== undefined) return known;
    const file = join(this.storage, `${volumeId}.img`);
    execFileSync("truncate", ["-s", "4M", file]);
    const device = execFileSync("losetup", ["--find", "--show", file], { encoding: "utf8" }).trim();
    this.loops.set(volumeId, device);
    return device;
  }

  private detachLoop(volumeId: string): void {
    const device = this.loops.get(volumeId);
    if (device !== undefined) execFileSync("losetup", ["--detach", device]);
    this.loops.delete(volumeId);
  }

  private serve(server: Server, service: string, methods: Methods): void {
    const definition: Record<string, ServiceDefinition[string]> = {};
    const handlers: Record<string, (call: { request: object }, answer: Answer) => void> = {};
    for (const [name, one] of Object.entries(methods)) {
      const { request, response } = one;
      definition[name] = {
        path: `${service}/${name}`,
        requestStream: false,
        responseStream: false,
        requestSerialize: (value: unknown) => Buffer.from(request.encode(value).finish()),
        requestDeserialize: (bytes: Buffer) => request.decode(bytes),
        responseSerialize: (value: unknown) => Buffer.from(response.encode(value).finish()),
        responseDeserialize: (bytes: Buffer) => response.decode(bytes),
      };
      handlers[name] = (call, answer) => void this.answer(name, one, { request: call.request, answer });
    }
    server.addService(definition, handlers as never); // reason: grpc-js types handlers by generated services
  }

  private async answer(
    method: string,
    { response, handle }: Served,
    { request, answer }: { readonly request: object; readonly answer: Answer },
  ): Promise<void> {
    this.calls.push({ method, request });
    const queue = this.hanging.get(method);
    if (queue !== undefined) await new Promise<void>((go) => queue.push(go));
    const at = this.faults.findIndex((fault) => fault.method === method);
    const [fault] = at === -1 ? [] : this.faults.splice(at, 1);
    try {
      const result = fault === undefined || fault.afterWork === true ? handle(request) : {};
      if (fault !== undefined) answer({ code: fault.code, details: fault.message });
      else answer(null, response.fromPartial(result));
    } catch (error) {
      answer({ code: status.INTERNAL, details: String(error) });
    }
  }
}

type Answer = (error: { code: number; details: string } | null, value?: unknown) => void;

/** One method: its messages, and what it does. */
interface Served {
  readonly request: Codec<unknown>;
  readonly response: Codec<unknown>;
  handle(request: unknown): object;
}
type Methods = Readonly<Record<string, Served>>;

function served<Request, Response>(
  request: Codec<Request>,
  response: Codec<Response>,
  handle: (request: Request) => object,
): Served {
  return {
    request: request as Codec<unknown>, // reason: only ever paired with its own messages
    response: response as Codec<unknown>, // reason: as above
    handle: (value) => handle(value as Request), // reason: decoded by `request`
  };
}

function isMounted(path: string): boolean {
  return readFileSync("/proc/self/mountinfo", "utf8").includes(` ${path} `);
}

function bind(source: string, target: string): void {
  mkdirSync(target, { recursive: true });
  if (!isMounted(target)) execFileSync("mount", ["--bind", source, target]);
}

function unbind(target: string): void {
  while (isMounted(target)) execFileSync("umount", [target]);
  if (!existsSync(target)) return;
  try {
    rmdirSync(target);
  } catch {
    unlinkSync(target);
  }
}
