import { connect, type Socket } from "node:net";

interface Place {
  readonly host: string;
  readonly port: number;
}

/**
 * Connections that are begun before it is known where to: upgrades nearly always go where the last one went, and while
 * the runtime is asked for the address, the connection can be made.
 */
export class EarlyDials {
  private last: Place | undefined;

  /** Begins to connect to where the last upgrade went. Whoever begins takes or drops it. */
  begin(): EarlyDial | undefined {
    return this.last && new EarlyDial(this.last);
  }

  /** An upgrade goes to this address. Only plain ones are remembered. */
  note(target: URL): void {
    this.last = target.protocol === "http:" ? placeOf(target) : undefined;
  }
}

/** A connection on trial. */
export class EarlyDial {
  private socket: Socket | undefined;

  constructor(private readonly place: Place) {
    this.socket = connect(place)
      .on("error", () => this.drop())
      .on("close", () => this.drop());
  }

  /** The connection, if it leads to this address; it is the caller's then. */
  take(target: URL): Socket | undefined {
    const { host, port } = placeOf(target);
    const { socket, place } = this;
    if (socket === undefined || target.protocol !== "http:" || host !== place.host || port !== place.port)
      return this.drop();
    this.socket = undefined;
    socket.removeAllListeners("close");
    return socket;
  }

  drop(): undefined {
    this.socket?.destroy();
    this.socket = undefined;
  }
}

function placeOf({ hostname, port }: URL): Place {
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
}
