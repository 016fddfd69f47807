import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamDecoder } from "@grpc/grpc-js/build/src/stream-decoder.js";
import { joinSmallFrames, type PartialMessage } from "./small-frames.ts";

joinSmallFrames();
const { write } = StreamDecoder.prototype;
joinSmallFrames();

function message(bytes: number): Buffer {
  const framed = Buffer.alloc(5 + bytes, "abcdefg");
  framed.writeUInt8(0, 0);
  framed.writeUInt32BE(bytes, 1);
  return framed;
}

test("joining is set up once, however often it is asked for", () => {
  assert.equal(StreamDecoder.prototype.write, write);
});

/** Frames that the decoder keeps, and the messages that it returned, after each piece of so many bytes. */
function receive(bytes: Buffer, sizes: (at: number) => number) {
  const decoder = new StreamDecoder(-1);
  const messages: Buffer[] = [];
  let most = 0;
  // Reason for the cast: the fields are private.
  const kept = () => (decoder as unknown as PartialMessage).readPartialMessage.length;
  for (let from = 0, at = 0; from < bytes.length; at++) {
    const to = from + sizes(at);
    messages.push(...decoder.write(bytes.subarray(from, to)));
    from = to;
    most = Math.max(most, kept());
  }
  return { messages, most, left: kept() };
}

const whole = message(200_000);
const cases = [
  { name: "one byte", sizes: () => 1, most: 70 },
  { name: "two sizes in turn", sizes: (at: number) => 1 + (at % 2) * 100, most: 70 },
  { name: "falling sizes", sizes: (at: number) => 50 - (at % 50), most: 100 },
  { name: "16 KiB", sizes: () => 16_384, most: 13 },
  { name: "any size", sizes: (at: number) => 1 + ((at * 7919) % 9973), most: 100 },
];
for (const { name, sizes, most } of cases) {
  test(`a message in frames of ${name} is received as it is, and few frames are kept`, () => {
    const both = Buffer.concat([whole, message(0), message(10)]);
    const received = receive(both, sizes);
    assert.deepEqual(received.messages, [whole, message(0), message(10)]);
    assert.ok(received.most <= most, `${received.most} frames`);
  });
}

test("nothing of a message is kept once it is complete", () => {
  assert.equal(receive(whole, () => 16_384).left, 0);
});
