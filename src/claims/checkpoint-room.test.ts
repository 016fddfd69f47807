import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeClaims } from "./checkpoint.ts";
import { CheckpointRoom } from "./checkpoint-room.ts";
import type { ClaimRecord } from "./claim-record.ts";

function claim(name: string, { driver = "gpu.example.com", cdiDevices = [] as readonly string[] } = {}): ClaimRecord {
  const devices = cdiDevices.map((id) => ({ driver, pool: "p", device: "d", requests: ["r"], cdiDevices: [id] }));
  const drivers = new Map([[driver, devices]]);
  return { uid: `uid-${name}`, name, namespace: "default", pods: new Set(["one", "two"]), drivers, isPrepared: true };
}

const NAMES = ["plain", 'quote "', "back\\slash", "control \u0001", "ünïcode 漢字", "\ud800"];

test("what the file may have is counted to the byte, whatever the names are", () => {
  const claims = NAMES.map((name) => claim(name, { cdiDevices: NAMES }));
  const bytes = Buffer.byteLength(`${JSON.stringify(encodeClaims(claims))}\n`);
  const roomOf = (most: number): CheckpointRoom => {
    const room = new CheckpointRoom({ bytes: most, devices: 2 ** 30 });
    for (const each of claims.slice(0, -1)) room.set(each);
    return room;
  };
  const [last = assert.fail()] = claims.slice(-1);
  // The checksum has up to ten digits, and there is one comma less than claims.
  roomOf(bytes + 11).check(last);
  assert.throws(
    () => roomOf(bytes - 1).check(last),
    /^Error: checkpoint ResourceClaim default\/.*: it would have \d+ bytes/,
  );
});

test("a claim that is too much for the file is refused; one that does not grow, or after another has gone, is not", () => {
  const room = new CheckpointRoom({ bytes: 1000, devices: 2 ** 30 });
  const old = claim("old", { cdiDevices: ["x".repeat(400)] });
  const next = claim("next", { cdiDevices: ["x".repeat(200)] });
  room.check(old);
  room.set(old);
  assert.throws(
    () => room.check(next),
    /checkpoint ResourceClaim default\/next: it would have \d+ bytes, more than 1000/,
  );
  room.check(old);
  room.delete("default/old");
  room.check(next);
  room.set(next);
  room.set(next);
  assert.throws(() => room.check(old), /more than 1000/);
});

test("a driver has a share of the room for devices, and leaves another one as much", () => {
  const room = new CheckpointRoom({ bytes: 2 ** 30, devices: 100_000 });
  const fill = (driver: string): number => {
    for (let at = 0; ; at++) {
      const next = claim(`${driver}-${at}`, { driver, cdiDevices: ["x".repeat(400)] });
      try {
        room.check(next);
      } catch (error) {
        assert.match(
          String(error),
          new RegExp(`ResourceClaim default/${driver}-${at}: devices of driver ${driver} would`),
        );
        return at;
      }
      room.set(next);
    }
  };
  const first = fill("evil.example");
  const second = fill("gpu.example.com");
  assert.ok(first >= 10 && first <= 30, `${first}`);
  assert.ok(second >= first * 0.7, `${second} after ${first}`);
  // What it has is accepted once more, and nothing else.
  assert.equal(fill("evil.example"), first);
});

test("a claim that an earlier agent saved and that grows no larger is accepted, however large it is", () => {
  const room = new CheckpointRoom({ bytes: 10_000, devices: 1000 });
  room.set(claim("old", { cdiDevices: ["x".repeat(20_000)] }));
  room.check(claim("old", { cdiDevices: ["x".repeat(20_000)] }));
  room.check(claim("old", { cdiDevices: ["x".repeat(10)] }));
  assert.throws(() => room.check(claim("old", { cdiDevices: ["x".repeat(20_001)] })), /more than/);
});
