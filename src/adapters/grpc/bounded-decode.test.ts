import assert from "node:assert/strict";
import { test } from "node:test";
import { ListAndWatchResponse } from "../devices/generated/deviceplugin.ts";
import { decodeBounded } from "./bounded-decode.ts";

const device = (nodes: number) => ({
  ID: "a",
  health: "Healthy",
  topology: { nodes: Array.from({ length: nodes }, () => ({ ID: 1n })) },
});
const encoded = (nodes: number): Uint8Array => ListAndWatchResponse.encode({ devices: [device(nodes)] }).finish();

test("a message of no more fields than the limit is decoded", () => {
  // The device, its id, health and topology, and two fields for each node.
  assert.deepEqual(decodeBounded(ListAndWatchResponse, encoded(8), 20), { devices: [device(8)] });
});

test("a message of more than twice as many fields is not, wherever they are", () => {
  assert.throws(() => decodeBounded(ListAndWatchResponse, encoded(100), 100), /more than 100 fields/);
  const unknown = Uint8Array.from({ length: 1000 }, (_, at) => (at % 2 === 0 ? 0x28 : 1));
  assert.throws(() => decodeBounded(ListAndWatchResponse, unknown, 100), /more than 100 fields/);
});

test("nothing is made of fields beyond the limit", () => {
  let made = 0;
  const counting = {
    decode: (reader: Parameters<typeof ListAndWatchResponse.decode>[0]) => {
      assert.ok(!(reader instanceof Uint8Array));
      for (;;) {
        reader.uint32();
        made++;
      }
    },
  };
  assert.throws(() => decodeBounded(counting, new Uint8Array(100_000), 10), /more than 10 fields/);
  assert.equal(made, 20);
});
