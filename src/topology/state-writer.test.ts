import assert from "node:assert/strict";
import { test } from "node:test";
import { silent } from "../lib/log.ts";
import { StateWriter } from "./state-writer.ts";

test("writes never overlap, also if who waited for one saves again at once", async () => {
  let state = 0;
  let disk = "";
  const writing = new Set<() => void>();
  let most = 0;
  const replace = async (_path: string, text: string): Promise<void> => {
    await new Promise<void>((resolve) => {
      writing.add(resolve);
      most = Math.max(most, writing.size);
    });
    disk = text;
  };
  const writer = new StateWriter({ files: { replace }, log: silent }, { path: "/state", text: () => String(state) });
  const change = (): Promise<void> => {
    state++;
    return writer.save();
  };
  const twice = change().then(change);
  const other = change();
  let isDone = false;
  const all = Promise.all([twice, other]).then(() => {
    isDone = true;
  });
  while (!isDone) {
    // The latest first, as a disk may do.
    const last = [...writing].at(-1);
    if (last !== undefined) writing.delete(last);
    last?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await all;
  assert.deepEqual([most, disk], [1, "3"]);
});
