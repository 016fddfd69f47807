import { createServer } from "node:net";

/** Below those that the kernel gives to outgoing connections: one of them could take a port before its server does. */
const FIRST = 20_000;
const COUNT = 12_000;

/** One after the other from a random one on: an agent refuses to start with the same port for two servers. */
let next = Math.floor(Math.random() * COUNT);

/** A TCP port that nobody has, and that this process was not given before. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < COUNT; tried++) {
    const port = FIRST + next;
    next = (next + 1) % COUNT;
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${FIRST} to ${FIRST + COUNT - 1}`);
}

/** On all addresses: what listens on any of them is in the way. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const isListening = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false)).listen(port, "0.0.0.0", () => resolve(true));
  });
  if (isListening) await new Promise((resolve) => server.close(resolve));
  return isListening;
}
