import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOf } from "../../web/lines.ts";

function answer(pieces: Iterable<string>): Response {
  const bytes = new TextEncoder();
  const source = pieces[Symbol.iterator]();
  return new Response(
    new ReadableStream({
      pull(controller) {
        const { done, value } = source.next();
        if (done === true) controller.close();
        else controller.enqueue(bytes.encode(value));
      },
    }),
  );
}

async function collect(response: Response, longest?: number): Promise<string[]> {
  const found: string[] = [];
  for await (const line of linesOf(response, longest)) found.push(line);
  return found;
}

test("lines are whole, wherever the pieces are cut; the last one needs no line break", async () => {
  assert.deepEqual(await collect(answer(["one\ntw", "o", "\n", "\nfour"])), ["one", "two", "", "four"]);
  assert.deepEqual(await collect(answer(["one\n"])), ["one"]);
  assert.deepEqual(await collect(answer([])), []);
});

test("a line is cut where it gets too long, and the next one is whole again", async () => {
  assert.deepEqual(await collect(answer(["abcdef\nxy\nab", "cd", "ef\nz"]), 4), ["abcd", "xy", "abcd", "z"]);
});

test("a line without an end costs no more than its beginning", async () => {
  function* endless(): Generator<string> {
    for (let count = 0; count < 4096; count++) yield "x".repeat(16_384);
    yield "\nlast";
  }
  const began = performance.now();
  const found = await collect(answer(endless()), 1000);
  assert.deepEqual([found.length, found[0]?.length, found[1]], [2, 1000, "last"]);
  assert.ok(performance.now() - began < 10_000, "64 MB in pieces are not joined again and again");
});
