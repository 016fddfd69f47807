import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeviceList } from "../adapters/devices/plugin-client.ts";
import { FakeClock } from "../lib/clock.ts";
import { ListTurns } from "./list-turns.ts";

const { signal } = new AbortController();
const list = (bytes: number): DeviceList => ({ bytes, read: () => ({ devices: [] }) });

test("lists end when their stream does, and the stream is left when nobody reads on", async () => {
  const clock = new FakeClock();
  const turns = new ListTurns(clock);
  let left = 0;
  async function* stream(): AsyncGenerator<DeviceList, void, undefined> {
    try {
      yield* [list(10), list(20)];
    } finally {
      left++;
    }
  }
  const read: number[] = [];
  for await (const { bytes } of turns.inTurn("example.com/gpu", stream(), { signal })) read.push(bytes);
  assert.deepEqual([read, left], [[10, 20], 1]);
  for await (const { bytes } of turns.inTurn("example.com/gpu", stream(), { signal })) {
    read.push(bytes);
    break;
  }
  await clock.advance(0);
  assert.deepEqual([read, left], [[10, 20, 10], 2]);
});
