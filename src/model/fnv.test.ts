import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fnv1a128 } from "./fnv.ts";

const PRIME = (1n << 88n) + 315n;

/** By its definition. */
function defined(bytes: Uint8Array): string {
  let hash = 0x6c62272e07bb014262b821756295c58dn;
  for (const byte of bytes) hash = BigInt.asUintN(128, (hash ^ BigInt(byte)) * PRIME);
  return hash.toString(16).padStart(32, "0");
}

test("FNV-1a of 128 bits is the published one", () => {
  const cases = { "": "6c62272e07bb014262b821756295c58d", a: "d228cb696f1a8caf78912b704e4a8964" };
  for (const [text, want] of Object.entries(cases)) assert.equal(fnv1a128(Buffer.from(text)), want);
});

test("FNV-1a of 128 bits follows its definition for any bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => assert.equal(fnv1a128(bytes), defined(bytes))));
});
