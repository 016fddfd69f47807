import { connect, type Socket } from "node:net";

interface Place {
  readonly host: string;
  readonly port: number;
}

/**
 * Connections that are dialed before their target is known: upgrades nearly always go to the target of the last one,
 * and the connection is made while the runtime is asked for the address.
 */
export class EarlyDials {
  private last: Place | undefined;

  /** Dials the target of the last upgrade. The caller takes or drops the connection. */
  begin(): EarlyDial | undefined {
    return this.last && new EarlyDial(this.last);
  }

  /** Records the target of an upgrade; only plain HTTP ones. */
  note(target: URL): void {
    this.last = target.protocol === "http:" ? placeOf(target) : undefined;
  }
}

/** A connection that was dialed early. */
export class EarlyDial {
  private socket: Socket | undefined;

  constructor(private readonly place: Place) {
    this.socket = connect(place)
      .on("error", () => this.drop())
      .on("close", () => this.drop());
  }

  /** The connection, if it goes to this address; the caller owns it then. */
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
