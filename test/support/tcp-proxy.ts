import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "./free-port.ts";

/** Stands between a client and a server on loopback, and lets connections be cut, go silent or be refused. */
export class TcpProxy {
  private readonly pairs = new Set<{ readonly near: Socket; readonly far: Socket }>();
  private server: Server | undefined;
  private port = 0;
  connections = 0;

  private constructor(private readonly target: number) {}

  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    // Not one of the ports of outgoing connections, which may be taken while it does not listen.
    proxy.port = await freePort();
    await proxy.listen();
    return proxy;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** Takes connections (again, on the same port). */
  async listen(): Promise<void> {
    const server = createServer((near) => this.join(near));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(this.port, "127.0.0.1", resolve);
    });
    this.server = server;
  }

  /** Open connections stay open but carry nothing any more, in either direction. New ones work. */
  freeze(): void {
    for (const { near, far } of this.pairs) {
      for (const socket of [near, far]) {
        socket.removeAllListeners("data");
        socket.pause();
      }
    }
  }

  cut(): void {
    for (const { near, far } of this.pairs) {
      near.destroy();
      far.destroy();
    }
  }

  /** Refuses connections and cuts those that are open. */
  async stop(): Promise<void> {
    const server = this.server;
    this.server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    this.cut();
    await closed;
  }

  private join(near: Socket): void {
    this.connections++;
    const far = connect(this.target, "127.0.0.1");
    const pair = { near, far };
    this.pairs.add(pair);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("error", () => undefined);
      from.on("data", (bytes) => to.write(bytes));
      from.on("close", () => {
        to.destroy();
        this.pairs.delete(pair);
      });
    }
  }
}
