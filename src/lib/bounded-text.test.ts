import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { clip, firstBytes, lastBytes } from "./bounded-text.ts";

const cases = [
  { name: "a short text stays as it is", text: "short", bytes: 100, want: "short" },
  { name: "a text of exactly the limit stays as it is", text: "12345", bytes: 5, want: "12345" },
  {
    name: "a long text names what was left out",
    text: "x".repeat(1000),
    bytes: 60,
    want: `${"x".repeat(31)}… (969 characters omitted)`,
  },
  { name: "a limit below the note cuts the note", text: "x".repeat(1000), bytes: 4, want: "… " },
];
for (const { name, text, bytes, want } of cases) test(name, () => assert.equal(clip(text, bytes), want));

test("no half character is left at either end", () => {
  assert.equal(firstBytes("aé", 2), "a");
  assert.equal(lastBytes("éa", 2), "a");
  assert.equal(firstBytes("😀😀", 7), "😀");
});

test("the limit holds in bytes for any text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 400 }), fc.nat(200), (text, bytes) => {
      for (const cut of [clip, firstBytes, lastBytes]) {
        const result = cut(text, bytes);
        assert.ok(Buffer.byteLength(result) <= Math.max(bytes, 0), `${cut.name}: ${Buffer.byteLength(result)}`);
      }
      if (Buffer.byteLength(text) <= bytes) assert.equal(clip(text, bytes), text);
    }),
  );
});
