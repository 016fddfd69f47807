import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { type LogFields, type Logger, silent } from "../../lib/log.ts";
import { KeptListener } from "./kept-listener.ts";
import { ListenError } from "./listen-error.ts";

function setup(problems: string[]) {
  const clock = new FakeClock();
  const said: string[] = [];
  const note = (message: string, fields?: LogFields) =>
    said.push(`${message}: ${fields?.["error"] ?? fields?.["address"]}`);
  const log: Logger = { ...silent, info: note, warn: note };
  let closed = 0;
  const listen = async () => {
    const problem = problems.shift();
    if (problem !== undefined) throw new ListenError("InUse", problem);
    return { address: "127.0.0.1:1", port: 1, close: async () => void closed++ };
  };
  const kept = new KeptListener({ log, clock, listen }, { name: "health" });
  return { clock, said, kept, closed: () => closed };
}

test("a port in use is retried every 5 s, and each different error is logged once", async () => {
  const { clock, said, kept } = setup(["taken by a", "taken by a", "taken by b"]);
  const controller = new AbortController();
  const told: (string | undefined)[] = [];
  kept.onChange(() => told.push(kept.trouble ?? kept.address), controller);
  const running = kept.run(controller);
  await clock.advance(4999);
  assert.equal(kept.trouble, "taken by a");
  assert.equal(kept.address, undefined);
  await clock.advance(10_001);
  assert.equal(kept.address, "127.0.0.1:1");
  assert.equal(kept.trouble, undefined);
  const retrying = "Failed to listen, retrying";
  assert.deepEqual(said, [`${retrying}: taken by a`, `${retrying}: taken by b`, "Started listening: 127.0.0.1:1"]);
  assert.deepEqual(told, ["taken by a", "taken by b", "127.0.0.1:1"]);
  controller.abort();
  await running;
});

test("the end of the run closes the listener", async () => {
  const { kept, closed } = setup([]);
  const controller = new AbortController();
  assert.equal(await kept.open(), true);
  const running = kept.run(controller);
  controller.abort();
  await running;
  assert.equal(closed(), 1);
  assert.equal(kept.address, undefined);
});

test("a run that ends while it waits for the port ends quietly", async () => {
  const { clock, kept, closed } = setup(["taken"]);
  const controller = new AbortController();
  const running = kept.run(controller);
  await clock.advance(1);
  controller.abort();
  await running;
  assert.equal(closed(), 0);
  assert.equal(clock.waiting, 0);
});
