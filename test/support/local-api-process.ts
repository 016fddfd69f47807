/** A local API in a process of its own, to be killed: its directory is the argument, and it says `ready`. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openLocalCluster } from "../../src/apiserver/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { silent } from "../../src/lib/log.ts";

const [directory = "", socket = "", port = "0"] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
const leaving = manyListeners();
const cluster = await openLocalCluster(
  { clock: new SystemClock(), log: silent, random: Math.random },
  {
    directory,
    socket,
    nodeName: "here",
    host: "127.0.0.1",
    port: Number(port),
    kubeconfig: join(directory, "kubeconfig"),
    serviceSubnet: "10.96.0.0/16",
    nodePorts: [30_000, 32_767],
    describeSource: () => "a file",
  },
  { signal: leaving.signal },
);
const listeners = Object.values(cluster.listeners);
for (const listener of listeners) await listener.open();
process.on("SIGTERM", () => leaving.abort());
// What is left after a collection is what is held: without one, memory shows the garbage of the writes before.
process.on("SIGUSR2", () => {
  for (let round = 0; round < 4; round++) globalThis.gc?.();
});
process.stdout.write("ready\n");
await Promise.all([
  ...listeners.map((listener) => listener.run({ signal: leaving.signal })),
  ...cluster.loops.map((loop) => loop.run(leaving.signal)),
]);
