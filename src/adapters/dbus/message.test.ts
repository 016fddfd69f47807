import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type BusMessage, decodeMessage, encodeMessage, messageLength } from "./message.ts";
import { parseSignature } from "./signature.ts";
import { type BusValue, ValueReader, ValueWriter } from "./values.ts";

describe("values on the wire", () => {
  const rows: [string, BusValue[]][] = [
    ["s", ["hello"]],
    ["ybnqiu", [1, true, -2, 3, -4, 5]],
    ["xtd", [-1n, 2n ** 63n, 0.5]],
    ["yt", [7, 8n]],
    ["as", [["a", "", "ä"]]],
    [
      "a(yv)",
      [
        [
          [1, { signature: "s", value: "x" }],
          [2, { signature: "t", value: 3n }],
        ],
      ],
    ],
    ["ya{sv}s", [1, [["k", { signature: "ai", value: [1, 2] }]], "end"]],
    ["ssss", ["shutdown", "kubelet", "why", "delay"]],
    ["at", [[]]],
    ["og", ["/a/b", "a{sv}"]],
  ];
  for (const [signature, values] of rows) {
    test(`${signature} is read as it was written`, () => {
      const written = new ValueWriter().write(
        signature,
        values.map((each) => (each === true ? 1 : each)),
      );
      assert.deepEqual(new ValueReader(written.bytes, true).read(signature), values);
    });
  }

  test("what ends too early is an error, not a read beyond it", () => {
    const whole = new ValueWriter().write("sas", ["hello", ["a", "b"]]).bytes;
    for (let length = 0; length < whole.length; length++) {
      assert.throws(() => new ValueReader(whole.subarray(0, length), true).read("sas"), RangeError);
    }
  });

  for (const signature of ["z", "a", "(s", "a{", "a()", "a{}", `${"a".repeat(70)}s`]) {
    test(`the signature ${signature.slice(0, 5)} is refused`, () => assert.throws(() => parseSignature(signature)));
  }
});

describe("messages", () => {
  const call: BusMessage = {
    type: "call",
    serial: 7,
    path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager",
    member: "Inhibit",
    destination: "org.freedesktop.login1",
    signature: "ssss",
    body: ["shutdown", "kubelet", "why", "delay"],
  };

  test("are read as they were written, and their length is known from their beginning", () => {
    const bytes = encodeMessage(call);
    assert.equal(messageLength(bytes.subarray(0, 16)), bytes.length);
    assert.equal(messageLength(bytes.subarray(0, 15)), undefined);
    assert.deepEqual(decodeMessage(bytes), call);
  });

  test("without a body", () => {
    const { signature: _s, body: _b, ...rest } = call;
    const bare = { ...rest, signature: "", body: [] };
    const bytes = encodeMessage(bare);
    assert.equal(messageLength(bytes), bytes.length);
    assert.deepEqual(decodeMessage(bytes), bare);
  });

  test("of the other byte order", () => {
    // A signal without fields and with one boolean in its body.
    const hex = "42040001000000040000000500000007080167000162000000000001";
    const bytes = Buffer.from(hex, "hex");
    assert.equal(messageLength(bytes), bytes.length);
    const { type, serial, body } = decodeMessage(bytes);
    assert.deepEqual([type, serial, body], ["signal", 5, [true]]);
  });
});
