import { isIP, type Socket } from "node:net";
import { withScope } from "../../lib/abort.ts";
import { connectTo, type DialOptions, type Place, secure } from "./sockets.ts";

const ANSWER_LIMIT_MS = 10_000;
const MOST_HEAD_BYTES = 16 * 1024;

/** A tunnel to `place` through an HTTP (CONNECT) or SOCKS5 proxy. User and password of the URL are used. */
export async function openThroughProxy(proxy: URL, place: Place, options: DialOptions): Promise<Socket> {
  const isTls = proxy.protocol === "https:";
  const isSocks = proxy.protocol.startsWith("socks5");
  const port = Number(proxy.port || (isSocks ? 1080 : isTls ? 443 : 80));
  const plain = await connectTo({ host: proxy.hostname.replace(/^\[|\]$/g, ""), port }, options);
  const servername = isIP(proxy.hostname) === 0 ? { servername: proxy.hostname } : { host: proxy.hostname };
  const socket = isTls ? await secure(plain, { settings: servername }, options) : plain;
  try {
    const limit = { clock: options.clock, ms: ANSWER_LIMIT_MS };
    await withScope([options.signal], limit, (signal) => {
      const reader = new HeadReader(socket, signal);
      return (isSocks ? socks5(reader, proxy, place) : httpConnect(reader, proxy, place)).finally(() =>
        reader.release(),
      );
    });
    return socket;
  } catch (error) {
    socket.destroy();
    throw new Error(`proxy ${proxy.host}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

async function httpConnect(reader: HeadReader, proxy: URL, { host, port }: Place): Promise<void> {
  const authority = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`];
  if (proxy.username !== "") {
    const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
    lines.push(`Proxy-Authorization: Basic ${Buffer.from(pair).toString("base64")}`);
  }
  reader.socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  const head = await reader.until((bytes) => {
    const end = bytes.indexOf("\r\n\r\n");
    return end === -1 ? 0 : end + 4;
  });
  const [statusLine = ""] = head.toString("latin1").split("\r\n");
  if (!/^HTTP\/1\.[01] 2\d\d/.test(statusLine)) throw new Error(`answered ${JSON.stringify(statusLine)} to CONNECT`);
}

async function socks5(reader: HeadReader, proxy: URL, { host, port }: Place): Promise<void> {
  const hasUser = proxy.username !== "";
  reader.socket.write(Buffer.from(hasUser ? [5, 2, 0, 2] : [5, 1, 0]));
  const [, method] = await reader.take(2);
  if (method === 2 && hasUser) await socksLogin(reader, proxy);
  else if (method !== 0) throw new Error("unsupported authentication method");
  const name = Buffer.from(host);
  // The proxy resolves the name: it may see other addresses.
  const request = Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]);
  reader.socket.write(request);
  const [, code, , kind] = await reader.take(4);
  if (code !== 0) throw new Error(`SOCKS error ${code}`);
  const length = kind === 1 ? 4 : kind === 4 ? 16 : ((await reader.take(1))[0] ?? 0);
  await reader.take(length + 2);
}

async function socksLogin(reader: HeadReader, proxy: URL): Promise<void> {
  const user = Buffer.from(decodeURIComponent(proxy.username));
  const password = Buffer.from(decodeURIComponent(proxy.password));
  reader.socket.write(Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]));
  const [, verdict] = await reader.take(2);
  if (verdict !== 0) throw new Error("authentication failed");
}

/** Reads the messages of the proxy; bytes after them stay in the socket. */
class HeadReader {
  private bytes = Buffer.alloc(0);
  private wake: (() => void) | undefined;
  private failure: Error | undefined;
  private readonly onReadable = (): void => {
    const chunk = this.socket.read() as Buffer | null;
    if (chunk !== null) this.bytes = Buffer.concat([this.bytes, chunk]);
    this.wake?.();
  };
  private readonly onEnd = (): void => this.fail(new Error("connection was closed"));
  private readonly onAbort = (): void => this.fail(this.signal.reason as Error);

  constructor(
    readonly socket: Socket,
    private readonly signal: AbortSignal,
  ) {
    socket.on("readable", this.onReadable).on("close", this.onEnd).on("end", this.onEnd);
    signal.addEventListener("abort", this.onAbort, { once: true });
  }

  take(count: number): Promise<Buffer> {
    return this.until((bytes) => (bytes.length >= count ? count : 0));
  }

  /** Waits until `measure` finds a complete message, and consumes it. */
  async until(measure: (bytes: Buffer) => number): Promise<Buffer> {
    for (;;) {
      const length = measure(this.bytes);
      if (length > 0) {
        const head = this.bytes.subarray(0, length);
        this.bytes = this.bytes.subarray(length);
        return head;
      }
      if (this.failure !== undefined) throw this.failure;
      if (this.bytes.length > MOST_HEAD_BYTES) throw new Error("response head is too large");
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  release(): void {
    this.socket.off("readable", this.onReadable).off("close", this.onEnd).off("end", this.onEnd);
    this.signal.removeEventListener("abort", this.onAbort);
    if (this.bytes.length > 0) this.socket.unshift(this.bytes);
  }

  private fail(error: Error): void {
    this.failure ??= error;
    this.wake?.();
  }
}
