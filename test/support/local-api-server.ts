import { Agent, request } from "node:http";
import { join } from "node:path";
import { Program } from "../integration/support/program.ts";

const PROGRAM = join(import.meta.dirname, "local-api-process.ts");

/** What the server answered. */
export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** A client of a local API's unix socket. */
export class SocketClient {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 64 });

  constructor(private readonly socket: string) {}

  /** Asks on the unix socket. Rejects when the connection breaks. */
  ask(method: string, path: string, body?: unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
      const asked = request({ socketPath: this.socket, method, path, headers, agent: this.agent }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
        );
      });
      asked.on("error", reject).end(text);
    });
  }

  close(): void {
    this.agent.destroy();
  }
}

/** The local API in a process that may be killed, on a directory that outlives it. */
export class LocalApiServer extends SocketClient {
  private constructor(
    readonly program: Program,
    socket: string,
  ) {
    super(socket);
  }

  /** Starts it and waits until it answers; with a TLS port unless that is 0. */
  static async start(directory: string, socket: string, port = 0): Promise<LocalApiServer> {
    const command = [process.execPath, "--expose-gc", "--import", "tsx", PROGRAM, directory, socket, String(port)];
    const program = new Program(command);
    await Promise.race([
      program.says("ready\n"),
      program.ended.then(({ stderr }) => Promise.reject(new Error(`the server ended: ${stderr}`))),
    ]);
    return new LocalApiServer(program, socket);
  }

  /** Collects the garbage of the server, and waits until it answers again. */
  async collect(): Promise<void> {
    process.kill(this.program.pid, "SIGUSR2");
    await new Promise((resolve) => setTimeout(resolve, 200));
    // Twice: a server that was held up may answer the first before it takes the signal.
    for (let turn = 0; turn < 2; turn++) await this.ask("GET", "/version");
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.close();
    await this.program.end(signal);
  }
}
