import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type handleServerStreamingCall, type handleUnaryCall, Server, ServerCredentials } from "@grpc/grpc-js";
import type { Method } from "../../src/adapters/grpc/channel.ts";

/** A gRPC server on a unix socket of its own, with the few methods that a test gives it. */
export class CriServer {
  private readonly dir = mkdtempSync(join(tmpdir(), "kts-cri-"));
  readonly socket = join(this.dir, "s");
  private server: Server | undefined;
  private readonly services: Parameters<Server["addService"]>[] = [];

  /** Answers a method with one message. */
  unary<Request, Response>(method: Method<Request, Response>, handle: handleUnaryCall<Request, Response>): this {
    return this.add(method, handle, false);
  }

  /** Answers a method with a stream. */
  stream<Request, Response>(
    method: Method<Request, Response>,
    handle: handleServerStreamingCall<Request, Response>,
  ): this {
    return this.add(method, handle, true);
  }

  async start(): Promise<this> {
    const server = new Server();
    this.server = server;
    for (const service of this.services) server.addService(...service);
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.socket}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    return this;
  }

  /** Drops every connection, as a kill does; the socket file goes too. */
  async kill(): Promise<void> {
    this.server?.forceShutdown();
    await rm(this.socket, { force: true });
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.dir, { recursive: true, force: true });
  }

  private add<Request, Response>(
    method: Method<Request, Response>,
    handle: handleUnaryCall<Request, Response> | handleServerStreamingCall<Request, Response>,
    responseStream: boolean,
  ): this {
    const definition = {
      path: method.path,
      requestStream: false,
      responseStream,
      requestSerialize: () => Buffer.alloc(0),
      requestDeserialize: (bytes: Buffer) => method.request.decode(bytes),
      responseSerialize: (message: Response) => Buffer.from(method.response.encode(message).finish()),
      responseDeserialize: () => undefined,
    };
    // grpc-js types a service by its generated definition, of which this is one method.
    this.services.push([{ handle: definition }, { handle }] as Parameters<Server["addService"]>);
    return this;
  }
}
