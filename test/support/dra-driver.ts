/**
 * A driver for dynamic resource allocation, as a program of its own: `dra-driver.ts OPTIONS`. What it does at each call
 * is read from a file, so that a test can change it; what it was asked is appended to another.
 */
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Server, ServerCredentials, type UntypedHandleCall } from "@grpc/grpc-js";
import type { Method } from "../../src/adapters/grpc/channel.ts";
import { type DraService, draHealthService, draServices } from "../../src/adapters/plugins/dra-client.ts";
import {
  type NodePrepareResourcesRequest,
  NodePrepareResourcesResponse,
  type NodeUnprepareResourcesRequest,
  NodeUnprepareResourcesResponse,
} from "../../src/adapters/plugins/generated/dra.ts";
import { HealthStatus, NodeWatchResourcesResponse } from "../../src/adapters/plugins/generated/dra-health.ts";
import {
  PluginInfo,
  type RegistrationStatus,
  RegistrationStatusResponse,
} from "../../src/adapters/plugins/generated/registration.ts";
import { registrationService } from "../../src/adapters/plugins/registration-client.ts";

export interface DraDriverOptions {
  readonly name: string;
  readonly service: DraService;
  readonly registration: string;
  readonly endpoint: string;
  readonly cdiDir: string;
  /** Holds a `DraBehaviour`. */
  readonly behaviour: string;
  readonly calls: string;
}

/** What the driver does; by default it succeeds. */
export interface DraBehaviour {
  readonly prepare?: "ok" | "error" | "hang" | "huge" | "unknown" | "skip" | "duplicate" | "die";
  readonly unprepare?: "ok" | "error" | "hang";
  readonly health?: "Healthy" | "Unhealthy";
}

const options = JSON.parse(process.argv[2] ?? "{}") as DraDriverOptions; // written by the test
const kind = `${options.name}/device`;
const server = new Server();

const behaviour = (): DraBehaviour => JSON.parse(readFileSync(options.behaviour, "utf8")) as DraBehaviour;
const note = (line: string): void => appendFileSync(options.calls, `${line}\n`);
const specOf = (uid: string): string => join(options.cdiDir, `${options.name}-${uid}.json`);

/** Each request of a claim gets a device that sets a variable and adds a file to the container's /dev. */
function prepareOne(uid: string, name: string): object {
  const devices = ["first", "second"].map((request) => ({
    name: `${uid}-${request}`,
    containerEdits: {
      env: [`CLAIM_${name.replaceAll("-", "_").toUpperCase()}_${request.toUpperCase()}=${uid}`],
      deviceNodes: [{ path: `/dev/claim-${name}-${request}`, hostPath: "/dev/null" }],
    },
  }));
  writeFileSync(specOf(uid), JSON.stringify({ cdiVersion: "0.5.0", kind, devices }));
  return {
    devices: ["first", "second"].map((request) => ({
      requestNames: [request],
      poolName: "pool",
      deviceName: `dev-${request}`,
      cdiDeviceIds: [`${kind}=${uid}-${request}`],
    })),
  };
}

function prepare({ claims }: NodePrepareResourcesRequest): object | undefined {
  const { prepare: what = "ok" } = behaviour();
  note(`prepare ${what} ${claims.map(({ name }) => name).join(",")}`);
  if (what === "hang") return undefined;
  if (what === "die") process.kill(process.pid, "SIGKILL");
  const answers = claims.map(({ uid, name }): [string, object] => {
    if (what === "error") return [uid, { error: `no device for ${name}` }];
    const many = { poolName: "p", deviceName: "d", cdiDeviceIds: ["x".repeat(100_000)] };
    if (what === "huge") return [uid, { devices: Array.from({ length: 20 }, () => many) }];
    if (what === "unknown") return ["another-uid", {}];
    return [uid, prepareOne(uid, name)];
  });
  return { claims: Object.fromEntries(what === "skip" ? [] : answers) };
}

function unprepare({ claims }: NodeUnprepareResourcesRequest): object | undefined {
  const { unprepare: what = "ok" } = behaviour();
  note(`unprepare ${what} ${claims.map(({ name }) => name).join(",")}`);
  if (what === "hang") return undefined;
  if (what === "ok") for (const { uid } of claims) rmSync(specOf(uid), { force: true });
  const error = what === "error" ? "busy" : "";
  return { claims: Object.fromEntries(claims.map(({ uid }) => [uid, { error }])) };
}

function serve<Request, Response>(
  { path, request, response }: Method<Request, Response>,
  handle: UntypedHandleCall,
  responseStream = false,
): void {
  const definition = {
    path,
    requestStream: false,
    responseStream,
    requestSerialize: () => Buffer.alloc(0),
    requestDeserialize: (bytes: Buffer) => request.decode(bytes),
    responseSerialize: (message: Response) => Buffer.from(response.encode(message).finish()),
    responseDeserialize: () => undefined,
  };
  server.addService({ handle: definition }, { handle });
}

const { prepare: prepareMethod, unprepare: unprepareMethod } = draServices[options.service];
serve(prepareMethod, ((call: { request: NodePrepareResourcesRequest }, done: (e: null, m: unknown) => void) => {
  const answer = prepare(call.request);
  if (answer !== undefined) done(null, NodePrepareResourcesResponse.fromPartial(answer));
}) as UntypedHandleCall);
serve(unprepareMethod, ((call: { request: NodeUnprepareResourcesRequest }, done: (e: null, m: unknown) => void) => {
  const answer = unprepare(call.request);
  if (answer !== undefined) done(null, NodeUnprepareResourcesResponse.fromPartial(answer));
}) as UntypedHandleCall);
serve(registrationService.getInfo, ((_call: unknown, done: (e: null, m: unknown) => void) => {
  const { name, endpoint, service } = options;
  done(null, PluginInfo.fromPartial({ type: "DRAPlugin", name, endpoint, supportedVersions: [service] }));
}) as UntypedHandleCall);
serve(registrationService.notifyRegistrationStatus, ((
  call: { request: RegistrationStatus },
  done: (e: null, m: unknown) => void,
) => {
  note(call.request.pluginRegistered ? "registered" : `refused ${call.request.error}`);
  done(null, RegistrationStatusResponse.fromPartial({}));
}) as UntypedHandleCall);
serve(
  draHealthService.watch,
  ((call: { write(message: unknown): void; on(event: string, fn: () => void): void }) => {
    const tell = (): void => {
      const { health } = behaviour();
      if (health === undefined) return;
      const status = health === "Healthy" ? HealthStatus.HEALTHY : HealthStatus.UNHEALTHY;
      const devices = ["first", "second"].map((request) => ({
        device: { poolName: "pool", deviceName: `dev-${request}` },
        health: status,
        message: `it is ${health}`,
      }));
      call.write(NodeWatchResourcesResponse.fromPartial({ devices }));
    };
    const timer = setInterval(tell, 200);
    call.on("cancelled", () => clearInterval(timer));
    tell();
  }) as UntypedHandleCall,
  true,
);

mkdirSync(dirname(options.endpoint), { recursive: true });
mkdirSync(dirname(options.registration), { recursive: true });
/** Both services on both sockets: what a killed driver left is replaced. */
for (const socket of [options.endpoint, options.registration]) {
  rmSync(socket, { force: true });
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    ),
  );
}
process.on("SIGTERM", () => {
  for (const socket of [options.endpoint, options.registration]) rmSync(socket, { force: true });
  process.exit(0);
});
note("started");
