import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import type { Abortable } from "../../lib/abort.ts";
import { CodedError } from "../../lib/errors.ts";

/** A call that the runtime refused or that never reached it. */
export class ProbeError extends CodedError<"Unavailable" | "Refused"> {}

/**
 * Just enough CRI to check that a runtime is up and has an image: two unary calls on bare HTTP/2, a new connection each
 * time it is made. The real client is `adapters/cri`; this one exists so that start-up can ask every 20 ms, which a
 * gRPC channel with its reconnect back-off cannot.
 */
export class CriProbe {
  private readonly session: ClientHttp2Session;
  private failure: unknown;

  constructor(socket: string) {
    const stream = connectSocket(socket);
    stream.on("error", (error) => {
      this.failure = error;
    });
    this.session = connect("http://localhost", { createConnection: () => stream });
    this.session.on("error", (error) => {
      this.failure = error;
    });
  }

  /**
   * Which of runtime and network is not ready, as `reason: message`; empty when both are. Other conditions do not
   * count: containerd 2 reports `ContainerdHasNoDeprecationWarnings` false on every cgroup v1 machine.
   */
  async unreadiness(options: Abortable): Promise<string[]> {
    const answer = await this.call("/runtime.v1.RuntimeService/Status", Buffer.alloc(0), options);
    const missing: string[] = [];
    for (const status of fields(answer, 1)) {
      for (const condition of fields(status, 1)) {
        if (!["RuntimeReady", "NetworkReady"].includes(text(condition, 1)) || hasTrue(condition, 2)) continue;
        missing.push(`${text(condition, 3)}: ${text(condition, 4)}`);
      }
    }
    return missing;
  }

  /** Whether the runtime has an image of this name. */
  async hasImage(name: string, options: Abortable): Promise<boolean> {
    const request = lengthDelimited(1, lengthDelimited(1, Buffer.from(name)));
    const answer = await this.call("/runtime.v1.ImageService/ImageStatus", request, options);
    return fields(answer, 1).length > 0;
  }

  close(): void {
    this.session.destroy();
  }

  private call(path: string, message: Buffer, { signal }: Abortable): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      if (this.session.destroyed) return reject(this.unavailable());
      const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
      const stream = this.session.request(headers);
      const onAbort = (): void => void stream.destroy();
      signal.addEventListener("abort", onAbort, { once: true });
      const chunks: Buffer[] = [];
      let status: string | undefined;
      let words = "";
      const note = (from: Record<string, unknown>): void => {
        if (typeof from["grpc-status"] === "string") status = from["grpc-status"];
        if (typeof from["grpc-message"] === "string") words = decodeURIComponent(from["grpc-message"]);
      };
      stream.on("error", (error) => {
        this.failure = error;
      });
      stream.on("response", note);
      stream.on("trailers", note);
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("close", () => {
        signal.removeEventListener("abort", onAbort);
        if (signal.aborted) reject(signal.reason as Error);
        else if (status === undefined) reject(this.unavailable());
        else if (status === "14") reject(new ProbeError("Unavailable", words));
        else if (status !== "0") reject(new ProbeError("Refused", `${path}: ${words} (code ${status})`));
        // Five bytes: a compression flag, which is never set unasked, and the length.
        else resolve(Buffer.concat(chunks).subarray(5));
      });
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(message.byteLength, 1);
      stream.end(Buffer.concat([prefix, message]));
    });
  }

  private unavailable(): ProbeError {
    return new ProbeError("Unavailable", "the runtime does not answer", { cause: this.failure });
  }
}

function lengthDelimited(field: number, data: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(field << 3) | 2]), varint(data.byteLength), data]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 128);
  }
}

/** Length-delimited occurrences of one field of a protobuf message. */
function fields(message: Buffer, wanted: number): Buffer[] {
  return [...scan(message)].flatMap(({ field, data }) => (field === wanted && data !== undefined ? [data] : []));
}

function text(message: Buffer, wanted: number): string {
  return fields(message, wanted)[0]?.toString("utf8") ?? "";
}

function hasTrue(message: Buffer, wanted: number): boolean {
  return [...scan(message)].some(({ field, value }) => field === wanted && value === 1);
}

function* scan(message: Buffer): Generator<{ field: number; value?: number; data?: Buffer }> {
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at++];
      if (byte === undefined) throw new ProbeError("Refused", "cut-off answer of the runtime");
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.byteLength) {
    const key = next();
    const field = Math.floor(key / 8);
    if (key % 8 === 0) yield { field, value: next() };
    else if (key % 8 === 2) {
      const length = next();
      yield { field, data: message.subarray(at, at + length) };
      at += length;
    } else at += key % 8 === 1 ? 8 : 4;
  }
}
