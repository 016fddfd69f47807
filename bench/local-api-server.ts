// The local API in a process of its own for `local-api-objects.ts`. It reports for each write how long the server took to
// send it to its watchers, from the end of the write to disk until the last call of `write` on a connection; and on request
// the most CPU time that one turn of its event loop took.
import { open } from "node:fs/promises";
import { Socket } from "node:net";

/** What the server itself took for an event, in milliseconds. */
export interface FanOut {
  readonly wall: number;
  readonly cpu: number;
}

/** What the process is asked to do: report the events of so many watchers, or begin and end to measure turns. */
export type ServerOrder = { readonly watchers: number } | { readonly turns: "begin" | "end" };

/** What it answers. In milliseconds. */
export type ServerReport = FanOut | { readonly longestTurn: number };

/** Watchers of the event; 0: nothing is reported. */
let watchers = 0;
let writes = 0;
let durable = { at: 0, cpu: process.cpuUsage() };

const file = await open("/dev/null");
const { datasync } = file;
// reason: the class is not exported
const files = Object.getPrototypeOf(file) as { datasync: typeof datasync };
await file.close();
files.datasync = async function (this: typeof file): Promise<void> {
  await datasync.call(this);
  writes = 0;
  durable = { at: performance.now(), cpu: process.cpuUsage() };
};

const { write } = Socket.prototype;
// reason: one signature of several, as `push-body.ts` calls it
Socket.prototype.write = function (this: Socket, ...given: Parameters<typeof write>): boolean {
  const hasRoom = write.apply(this, given);
  // The answer to the writer comes after its watchers.
  if (++writes === watchers) {
    const wall = performance.now() - durable.at;
    const { user, system } = process.cpuUsage(durable.cpu);
    process.send?.({ wall, cpu: (user + system) / 1000 } satisfies FanOut);
  }
  return hasRoom;
} as typeof write;

/** CPU time rather than time: others may run on the machine. */
let longestTurn = 0;
let isMeasuring = false;

function measureTurn(before: NodeJS.CpuUsage): void {
  const { user, system } = process.cpuUsage(before);
  longestTurn = Math.max(longestTurn, (user + system) / 1000);
  if (isMeasuring) setImmediate(measureTurn, process.cpuUsage());
}

process.on("message", (order: ServerOrder) => {
  if ("watchers" in order) watchers = order.watchers;
  else if (order.turns === "begin") {
    longestTurn = 0;
    isMeasuring = true;
    setImmediate(() => measureTurn(process.cpuUsage()));
  } else {
    isMeasuring = false;
    process.send?.({ longestTurn } satisfies ServerReport);
  }
});
await import("../test/support/local-api-process.ts");
