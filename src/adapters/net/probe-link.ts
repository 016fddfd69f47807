import { connect, isIP, type Socket } from "node:net";

/** Where to connect: an address or a name. */
export interface TcpAddress {
  readonly host: string;
  readonly port: number;
}

/** Whom a connection tells. After `close()` it tells nothing more. */
export interface LinkEnds {
  connected(): void;
  /** Bytes as latin1, so that one character is one byte. */
  took(text: string): void;
  failed(error: Error): void;
  /** The other side has said all and the connection is over. */
  closed(): void;
}

/** A connection that one exchange uses. */
export interface Link {
  write(bytes: Buffer): void;
  close(): void;
}

/** One buffer for all: what it holds is copied before the callback returns. */
const shared = Buffer.allocUnsafe(16 * 1024);
/** Sockets that wait for their next connection, about 2 KB each: there are hardly ever more probes at one moment. */
const MOST_IDLE = 128;
const idle: ReusedLink[] = [];

/** A new TCP connection. It is always a new one; only the object that stands for it may have stood for another before. */
export function openLink(address: TcpAddress, ends: LinkEnds): Link {
  const known = idle.pop();
  if (known === undefined) return new ReusedLink(address, ends);
  known.connect(address, ends);
  return known;
}

/**
 * One connection after the other: making a socket object costs a third of what Node takes for a short connection, and
 * `connect` after `close` is what its documentation allows.
 *
 *     idle ──connect──► in use ──close, error, end──► closing ──"close"──► idle (after an error, or to a name: dropped)
 */
class ReusedLink implements Link {
  private ends: LinkEnds | undefined;
  private host: string;
  private readonly socket: Socket;

  constructor({ host, port }: TcpAddress, ends: LinkEnds) {
    this.ends = ends;
    this.host = host;
    const callback = (count: number): boolean => {
      this.ends?.took(shared.toString("latin1", 0, count));
      return true;
    };
    this.socket = connect({ host, port, onread: { buffer: shared, callback } })
      .on("error", (error) => this.ends?.failed(error))
      .on("connect", () => this.ends?.connected())
      .on("close", (hadError) => this.onClose(hadError));
  }

  connect({ host, port }: TcpAddress, ends: LinkEnds): void {
    this.ends = ends;
    this.host = host;
    this.socket.connect({ host, port });
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  close(): void {
    this.ends = undefined;
    this.socket.destroy();
  }

  private onClose(hadError: boolean): void {
    const { ends } = this;
    this.ends = undefined;
    // Told first: whoever opens the next one meanwhile must not get this one, whose "close" is still going round.
    ends?.closed();
    // A look-up cannot be called back: when it is done, Node would connect whatever the socket stands for by then.
    if (!hadError && idle.length < MOST_IDLE && isIP(this.host) !== 0) idle.push(this);
  }
}
