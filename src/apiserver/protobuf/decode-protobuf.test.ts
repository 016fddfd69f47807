import assert from "node:assert/strict";
import { test } from "node:test";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { StatusError } from "../status/status-error.ts";
import { decodeProtobuf } from "./decode-protobuf.ts";

const MAGIC = Buffer.from([0x6b, 0x38, 0x73, 0]);
const { LengthDelimited, Varint, Bit32, Bit64, StartGroup } = WireType;

const message = (...fields: readonly (readonly [number: number, value: string | Uint8Array])[]): Uint8Array => {
  const writer = new BinaryWriter();
  for (const [number, value] of fields) {
    writer.tag(number, LengthDelimited);
    if (typeof value === "string") writer.string(value);
    else writer.bytes(value);
  }
  return writer.finish();
};
const envelope = (kind: string, raw: Uint8Array): Buffer =>
  Buffer.concat([MAGIC, message([1, message([1, "v1"], [2, kind])], [2, raw])]);
const map = (metadata: Uint8Array, ...more: readonly (readonly [number, Uint8Array])[]): Buffer =>
  envelope("ConfigMap", message([1, metadata], ...more));

const isRefused = (error: unknown): boolean => error instanceof StatusError && error.code === 400;

test("names, labels and data come back as they were written, in any order and repeated", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 20 });
  const pairs = fc.dictionary(text, text, { maxKeys: 5 });
  fc.assert(
    fc.property(text, pairs, pairs, (name, labels, data) => {
      const entries = (all: Readonly<Record<string, string>>) =>
        Object.entries(all).map(([key, value]) => message([1, key], [2, value]));
      const metadata = message(
        ...entries(labels).map((entry): readonly [number, Uint8Array] => [11, entry]),
        [1, "first"],
        [1, name],
      );
      const decoded = decodeProtobuf(map(metadata, ...entries(data).map((entry) => [2, entry] as const)));
      const want = {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name, ...(Object.keys(labels).length > 0 && { labels }) },
        ...(Object.keys(data).length > 0 && { data }),
      };
      assert.deepEqual(JSON.parse(JSON.stringify(decoded)), JSON.parse(JSON.stringify(want)));
    }),
  );
});

test("unknown fields of every wire type are skipped", () => {
  const unknown = new BinaryWriter();
  unknown
    .tag(900, Varint)
    .uint32(7)
    .tag(901, Bit64)
    .double(1)
    .tag(902, Bit32)
    .float(1)
    .tag(903, LengthDelimited)
    .string("x");
  const metadata = Buffer.concat([unknown.finish(), message([1, "name"])]);
  assert.deepEqual(decodeProtobuf(map(metadata)), { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "name" } });
});

test("random bytes, and messages that were cut or changed, are decoded or refused", () => {
  const whole = map(message([1, "name"], [11, message([1, "a"], [2, "b"])]), [2, message([1, "k"], [2, "v"])]);
  const decode = (bytes: Buffer): void => {
    try {
      const { kind } = decodeProtobuf(bytes);
      assert.equal(typeof kind, "string");
    } catch (error) {
      assert.ok(isRefused(error), String(error));
    }
  };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(whole.length), fc.nat(255), (random, at, value) => {
      decode(Buffer.from(random));
      decode(envelope("Pod", random));
      decode(map(random));
      decode(whole.subarray(0, at));
      const changed = Buffer.from(whole);
      if (at >= MAGIC.length && at < changed.length) changed[at] = value;
      decode(changed);
    }),
    { numRuns: 500 },
  );
});

const raw = (text: string): Uint8Array => message([1, "n"], [17, message([7, message([1, text])])]);
const container = (name: string, args: number): Uint8Array =>
  Buffer.concat([message([1, name]), Buffer.alloc(2 * args, message([4, ""]))]);
const hostile: readonly (readonly [name: string, body: Buffer])[] = [
  ["nothing", Buffer.alloc(0)],
  ["no envelope", MAGIC],
  ["a kind that is not served", envelope("__proto__", Buffer.alloc(0))],
  ["a length past the end", envelope("Pod", Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]))],
  ["a number that never ends", envelope("Pod", Buffer.alloc(1_000_000, 0xff))],
  ["groups that nest without end", envelope("Pod", Buffer.alloc(1_000_000, (15 << 3) | StartGroup))],
  ["text where an object belongs", map(raw("{"))],
  ["JSON that nests deeply", map(raw(`${"[".repeat(500_000)}${"]".repeat(500_000)}`))],
  ["a message of the type of a number", envelope("ConfigMap", new BinaryWriter().tag(1, Varint).uint32(1).finish())],
  ["a text of the type of a number", map(new BinaryWriter().tag(1, Varint).uint32(1).finish())],
  [
    "a time beyond all calendars",
    map(
      message([
        8,
        new BinaryWriter()
          .tag(1, Varint)
          .int64(2n ** 62n)
          .finish(),
      ]),
    ),
  ],
  [
    "a body whose lists have too many elements together",
    envelope("Pod", message([2, message(...["a", "b"].map((name) => [2, container(name, 26_000)] as const))])),
  ],
  ["JSON with too many values", map(raw(`[${"[],".repeat(60_000)}1]`))],
  [
    "JSON that nests deeply behind too many values",
    map(raw(`[${"[],".repeat(60_000)}${"[".repeat(1500)}${"]".repeat(1501)}`)),
  ],
  ["a million empty containers", envelope("Pod", message([2, Buffer.alloc(2_000_000, Buffer.from([0x12, 0]))]))],
];

test("a body with as many values as JSON may have is decoded", () => {
  const entries = Array.from({ length: 49_000 }, (_, index) => [2, message([1, `k${index}`], [2, "v"])] as const);
  const { data } = decodeProtobuf(map(message([1, "name"]), ...entries));
  assert.equal(Object.keys(data as object).length, 49_000);
});

for (const [name, body] of hostile)
  test(`${name} is refused`, () => assert.throws(() => decodeProtobuf(body), isRefused));
