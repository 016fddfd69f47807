import type { Duplex } from "node:stream";

/** How long what was still on its way may take once the other side is gone. */
const LAST_WORDS_MS = 10_000;

/**
 * Makes a failed write the end of the writing side alone. Node destroys the whole socket at the first one, and with it
 * what the peer had said before it closed and what nobody has read yet: a runtime whose command ended while its input was
 * still coming answers that input with a reset, behind the command's last words.
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

/** What was read of a socket before it broke and waits for a slow receiver; a broken one gives it to nobody by itself. */
export function unread(socket: Duplex): Buffer | undefined {
  const rest: unknown = socket.read();
  return Buffer.isBuffer(rest) ? rest : undefined;
}

/**
 * Ends a connection when the other one is over: lets what was written leave, and goes on swallowing what comes until the
 * peer has closed too. Closed with something unread, the system would send a reset and drop what has not left yet.
 * Not for ever: the one that should read may have stopped.
 */
export function endSoon(stream: Duplex): void {
  if (stream.destroyed) return;
  const limit = setTimeout(() => stream.destroy(), LAST_WORDS_MS);
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
