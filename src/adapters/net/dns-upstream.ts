import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { readFile } from "node:fs/promises";
import { connect, isIP, isIPv6 } from "node:net";
import { type Abortable, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";

export interface DnsUpstreamDeps {
  readonly clock: Clock;
}

export interface DnsUpstreamOptions {
  /** The node's resolver file; empty: nobody is asked. */
  readonly file: () => string;
  /** True for servers that must not be asked: ourselves. */
  isExcluded(ip: string): boolean;
  /** For tests. */
  readonly port?: number;
}

/** One server gets this long, in milliseconds. */
const ATTEMPT_MS = 2000;
/** Servers that are asked, as resolvers do. */
const MAX_SERVERS = 3;
/** The file is read again after this long, in milliseconds. */
const REREAD_MS = 5000;
const DNS_PORT = 53;

/** Asks the servers of the node's resolv.conf, one after the other. */
export class DnsUpstream {
  private known: { readonly servers: readonly string[]; readonly readAt: number } | undefined;

  constructor(
    private readonly deps: DnsUpstreamDeps,
    private readonly options: DnsUpstreamOptions,
  ) {}

  /** The first answer, with whatever id; undefined if nobody answers. The query is sent under an id of its own. */
  async ask(query: Buffer, { signal, isTcp }: Abortable & { readonly isTcp: boolean }): Promise<Buffer | undefined> {
    const sent = Buffer.from(query);
    sent.writeUInt16BE(randomInt(0x10000), 0);
    const port = this.options.port ?? DNS_PORT;
    const limit = { clock: this.deps.clock, ms: ATTEMPT_MS };
    for (const server of await this.servers()) {
      try {
        return await withScope([signal], limit, (scoped) =>
          (isTcp ? askByTcp : askByUdp)({ server, port, query: sent }, { signal: scoped }),
        );
      } catch (error) {
        // Silent, refused or out of reach: the next one is asked.
        if (signal.aborted) throw error;
      }
    }
    return undefined;
  }

  private async servers(): Promise<readonly string[]> {
    const now = this.deps.clock.now().mono;
    if (this.known !== undefined && now - this.known.readAt < REREAD_MS) return this.known.servers;
    const file = this.options.file();
    const text = file === "" ? "" : await readFile(file, "utf8").catch(() => "");
    const servers = [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)]
      .map((match) => match[1] ?? "")
      .filter((ip) => isIP(ip) !== 0 && !this.options.isExcluded(ip))
      .slice(0, MAX_SERVERS);
    this.known = { servers, readAt: now };
    return servers;
  }
}

interface Exchange {
  readonly server: string;
  readonly port: number;
  readonly query: Buffer;
}

/** True for an answer to this query: forged ones do not know the id. */
function answers(message: Buffer, query: Buffer): boolean {
  return message.length >= 12 && message.readUInt16BE(0) === query.readUInt16BE(0) && (message[2] ?? 0) >= 0x80;
}

function askByUdp({ server, port, query }: Exchange, { signal }: Abortable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(server) ? "udp6" : "udp4");
    const end = (settle: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      socket.removeAllListeners("message").close();
      settle();
    };
    let isOver = false;
    const once = (settle: () => void): void => {
      if (isOver) return;
      isOver = true;
      end(settle);
    };
    const onAbort = (): void => once(() => reject(signal.reason as Error));
    socket.on("error", (error) => once(() => reject(error)));
    socket.on("message", (message) => {
      if (answers(message, query)) once(() => resolve(message));
    });
    signal.addEventListener("abort", onAbort, { once: true });
    // Connected: the kernel drops what others send, and says at once if nobody listens there.
    socket.connect(port, server, () => {
      if (!isOver) socket.send(query, (error) => error && once(() => reject(error)));
    });
    if (signal.aborted) onAbort();
  });
}

function askByTcp({ server, port, query }: Exchange, { signal }: Abortable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server, port });
    const onAbort = (): void => void socket.destroy(signal.reason as Error);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(query.length);
    let kept = Buffer.alloc(0);
    socket.on("connect", () => socket.write(Buffer.concat([length, query])));
    socket.on("data", (chunk: Buffer) => {
      kept = Buffer.concat([kept, chunk]);
      if (kept.length < 2 || kept.length < 2 + kept.readUInt16BE(0)) return;
      const message = Buffer.from(kept.subarray(2, 2 + kept.readUInt16BE(0)));
      if (answers(message, query)) resolve(message);
      socket.destroy();
    });
    socket.on("error", reject);
    socket.on("close", () => {
      signal.removeEventListener("abort", onAbort);
      reject(new Error(`${server} closed the connection`));
    });
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
}
