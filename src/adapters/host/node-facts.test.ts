import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { filesystemSize } from "./node-facts.ts";

test("a filesystem that hangs is asked once, however many want to know", async () => {
  let calls = 0;
  let answer: (stats: { blocks: number; bsize: number }) => void = () => undefined;
  const call = (): Promise<{ blocks: number; bsize: number }> => {
    calls++;
    return new Promise((resolve) => {
      answer = resolve;
    });
  };
  const sizes = [filesystemSize("/hung", call), filesystemSize("/hung", call), filesystemSize("/hung", call)];
  assert.equal(calls, 1);
  answer({ blocks: 10, bsize: 4096 });
  assert.deepEqual(await Promise.all(sizes), [40_960, 40_960, 40_960]);
  const again = filesystemSize("/hung", call);
  assert.equal(calls, 2);
  answer({ blocks: 1, bsize: 1 });
  assert.equal(await again, 1);
});

test("the size of a real filesystem, and of none", async () => {
  assert.ok((await filesystemSize(tmpdir())) > 2 ** 20);
  assert.equal(await filesystemSize("/nowhere/at/all"), 0);
});
