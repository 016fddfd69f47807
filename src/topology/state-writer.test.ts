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

test("a save that waits for one that fails is made all the same", async () => {
  let state = 0;
  const disk: string[] = [];
  const faults = [new Error("no space left on device")];
  const replace = async (_path: string, text: string): Promise<void> => {
    await Promise.resolve();
    const fault = faults.shift();
    if (fault !== undefined) throw fault;
    disk.push(text);
  };
  const writer = new StateWriter({ files: { replace }, log: silent }, { path: "/state", text: () => String(state) });
  const change = (): Promise<void> => {
    state++;
    return writer.save();
  };
  const results = await Promise.allSettled([change(), change(), change()]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["rejected", "fulfilled", "fulfilled"],
  );
  assert.deepEqual(disk, ["3"]);
});
