import type { Duplex } from "node:stream";

/** Milliseconds that remaining data may take once the other side has closed. */
const DRAIN_MS = 10_000;

/**
 * Makes a failed write end the writing side alone. Node destroys the whole socket, with what the peer sent before it
 * closed and is not read yet: a runtime whose command ended while input was still coming answers that input with a
 * reset, after the last output of the command.
 */
export function keepReading(socket: Duplex): void {
  let isBroken = false;
  const write = socket._write.bind(socket);
  const writev = socket._writev?.bind(socket);
  const final = socket._final.bind(socket);
  const forgiving = (done: () => void) => (error?: Error | null) => {
    if (error) isBroken = true;
    done();
  };
  socket._write = (chunk, encoding, done) => (isBroken ? done() : write(chunk, encoding, forgiving(done)));
  if (writev !== undefined) socket._writev = (chunks, done) => (isBroken ? done() : writev(chunks, forgiving(done)));
  socket._final = (done) => (isBroken ? done() : final(forgiving(done)));
}

/** What was received before a socket failed and is not consumed yet; a failed socket does not emit it. */
export function unread(socket: Duplex): Buffer | undefined {
  const rest: unknown = socket.read();
  return Buffer.isBuffer(rest) ? rest : undefined;
}

/**
 * Ends a connection after the other one has closed: flushes what was written, and discards what is received until the
 * peer closes too. Closed with unread data, the kernel would send a reset and drop what is not sent yet. Has a time limit:
 * the peer may have stopped reading.
 */
export function endSoon(stream: Duplex): void {
  if (stream.destroyed) return;
  const limit = setTimeout(() => stream.destroy(), DRAIN_MS);
  limit.unref();
  stream.on("close", () => clearTimeout(limit));
  const look = (): void => {
    if (stream.writableFinished && stream.readableEnded) stream.destroy();
  };
  stream.on("finish", look).on("end", look);
  stream.end();
  stream.resume();
  look();
}
