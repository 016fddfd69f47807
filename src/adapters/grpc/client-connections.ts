/** What all clients of a listener may hold together; who exceeds it costs the one that is worth least its connection. */
export interface ClientLimits {
  readonly connections: number;
  /** Bytes of answers that clients have not read. */
  readonly unsentBytes: number;
}

/** The calls of one connection, as the server sees them. */
export interface ConnectionCalls {
  /** A client made a call. */
  begin(): OpenCall;
  /** The connection is closed. */
  close(): void;
}

/** One call until its answer is sent. */
export interface OpenCall {
  /** The answer is being sent. */
  answered(bytes: number): void;
  /** The answer was sent, or the client is gone. May be repeated. */
  end(): void;
}

interface Connection {
  readonly calls: Set<OpenCall>;
  readonly close: () => void;
}

interface Answer {
  readonly connection: Connection;
  readonly bytes: number;
}

/**
 * The connections of all clients of a listener. A client that connects beyond the limit, or does not read its answers,
 * must not keep others from being served: of the connections without a call the one is closed that was idle longest, and
 * of unread answers the oldest loses its connection.
 */
export class ClientConnections {
  /** The one that was used last is the last. */
  private readonly connections = new Set<Connection>();
  /** Oldest first. */
  private readonly unsent = new Map<OpenCall, Answer>();
  private unsentBytes = 0;

  constructor(private readonly limits: ClientLimits) {}

  /** Adds a connection that `close` ends. */
  add(close: () => void): ConnectionCalls {
    while (this.connections.size >= this.limits.connections) this.close(this.leastUsed());
    const connection = { calls: new Set<OpenCall>(), close };
    this.connections.add(connection);
    return { begin: () => this.begin(connection), close: () => this.remove(connection) };
  }

  closeAll(): void {
    for (const connection of this.connections) this.close(connection);
  }

  private begin(connection: Connection): OpenCall {
    if (this.connections.delete(connection)) this.connections.add(connection);
    const call: OpenCall = {
      answered: (bytes) => {
        if (connection.calls.has(call)) this.answered(call, { connection, bytes });
      },
      end: () => this.end(connection, call),
    };
    connection.calls.add(call);
    return call;
  }

  private answered(call: OpenCall, answer: Answer): void {
    this.unsent.set(call, answer);
    this.unsentBytes += answer.bytes;
    while (this.unsentBytes > this.limits.unsentBytes) {
      const [oldest] = this.unsent.values();
      // One that alone exceeds the limit is sent.
      if (oldest === undefined || oldest === answer) return;
      this.close(oldest.connection);
    }
  }

  private end(connection: Connection, call: OpenCall): void {
    connection.calls.delete(call);
    this.unsentBytes -= this.unsent.get(call)?.bytes ?? 0;
    this.unsent.delete(call);
  }

  private leastUsed(): Connection | undefined {
    for (const connection of this.connections) if (connection.calls.size === 0) return connection;
    const [first] = this.connections;
    return first;
  }

  private close(connection: Connection | undefined): void {
    if (connection === undefined) return;
    this.remove(connection);
    connection.close();
  }

  private remove(connection: Connection): void {
    this.connections.delete(connection);
    for (const call of connection.calls) this.end(connection, call);
  }
}
