import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PowerCutDisk } from "../../../test/support/power-cut-disk.ts";
import { silent } from "../../lib/log.ts";
import { LogError, type LogWrite, openObjectLog } from "./index.ts";

const DIRECTORY = "/state";
const PATH = "/state/objects.log";

/** A log with the owner that the store is for it: it keeps what was acknowledged. */
async function openOn(files: PowerCutDisk, slackBytes?: number) {
  const state = new Map<string, LogWrite>();
  let revision = 0;
  const content = () => ({ revision, objects: [...state.values()] });
  const options = { directory: DIRECTORY, ...(slackBytes !== undefined && { slackBytes }) };
  const opened = await openObjectLog({ files, log: silent, content }, options);
  for (const object of opened.objects) state.set(object.key, object);
  revision = opened.revision;
  return {
    state,
    revision: () => revision,
    async append(writes: readonly LogWrite[]): Promise<void> {
      await opened.log.append(writes);
      for (const write of writes) {
        revision = write.revision;
        if (write.value === undefined) state.delete(write.key);
        else state.set(write.key, write);
      }
    },
    close: () => opened.log.close(),
  };
}

const put = (key: string, revision: number, value: string): LogWrite => ({ key, revision, value });
const values = (state: ReadonlyMap<string, LogWrite>): Record<string, string | undefined> =>
  Object.fromEntries([...state].map(([key, { value }]) => [key, value]).sort());

test("what was appended is there after a restart, with the newest revision", async () => {
  const disk = new PowerCutDisk();
  const first = await openOn(disk);
  await first.append([put("pods/a", 1, '{"a":1}'), put("pods/b", 2, '{"b":"ü"}')]);
  await first.append([{ key: "pods/a", revision: 3, value: undefined }]);
  await first.close();
  const second = await openOn(disk.afterPowerCut());
  assert.deepEqual(values(second.state), { "pods/b": '{"b":"ü"}' });
  assert.equal(second.revision(), 3);
});

test("a secret is not readable on disk, and is decrypted again", async () => {
  const disk = new PowerCutDisk();
  const first = await openOn(disk);
  await first.append([{ ...put("secrets/x", 1, "s3cret-value"), isSecret: true }]);
  assert.ok(!disk.contentOf(PATH).includes("s3cret-value"));
  const second = await openOn(disk.afterPowerCut());
  assert.deepEqual(values(second.state), { "secrets/x": "s3cret-value" });
  assert.equal(second.state.get("secrets/x")?.isSecret, true);
});

test("a lost key is named, and nothing is overwritten", async () => {
  const disk = new PowerCutDisk();
  const first = await openOn(disk);
  await first.append([{ ...put("secrets/x", 1, "value"), isSecret: true }]);
  const before = disk.contentOf(PATH);
  await disk.remove("/state/secrets.key");
  await assert.rejects(openOn(disk), (error) => error instanceof LogError && error.code === "NoKey");
  assert.deepEqual(disk.contentOf(PATH), before);
});

test("a full disk fails the write, and the next one succeeds when there is room again", async () => {
  // 0: key, 1: remove .new, 2: open, 3: header, 4: sync, 5: directory, 6: first write, 7: sync, 8: second write.
  const disk = new PowerCutDisk({ failing: new Map([[8, "ENOSPC"]]) });
  const log = await openOn(disk);
  await log.append([put("a", 1, "1")]);
  await assert.rejects(
    log.append([put("b", 2, "2")]),
    (error) => error instanceof LogError && error.code === "NoSpace",
  );
  await log.append([put("c", 3, "3")]);
  const next = await openOn(disk.afterPowerCut());
  assert.deepEqual(values(next.state), { a: "1", c: "3" });
});

test("after a failed sync everything is written to another file before the next write is acknowledged", async () => {
  const disk = new PowerCutDisk({ failing: new Map([[9, "EIO"]]) });
  const log = await openOn(disk);
  await log.append([put("a", 1, "1")]);
  await assert.rejects(log.append([put("b", 2, "2")]), { code: "Failed", message: `write ${PATH}: EIO` });
  await log.append([put("c", 3, "3")]);
  const next = await openOn(disk.afterPowerCut());
  assert.deepEqual(values(next.state), { a: "1", c: "3" });
});

test("a file that grows by updates is compacted to its objects", async () => {
  const disk = new PowerCutDisk();
  const log = await openOn(disk, 1000);
  for (let revision = 1; revision <= 200; revision++) await log.append([put("a", revision, "x".repeat(100))]);
  assert.ok(disk.contentOf(PATH).length < 2000, String(disk.contentOf(PATH).length));
  const next = await openOn(disk.afterPowerCut());
  assert.equal(next.revision(), 200);
});

test("a log that was closed takes nothing any more, and may be closed again", async () => {
  const disk = new PowerCutDisk();
  const log = await openOn(disk);
  await log.append([put("a", 1, "1")]);
  await log.close();
  await log.close();
  const before = disk.contentOf(PATH);
  await assert.rejects(log.append([put("b", 2, "2")]), { code: "Closed" });
  assert.deepEqual(disk.contentOf(PATH), before);
});

test("damage in the middle is refused with its place, and the file is left alone", async () => {
  const disk = new PowerCutDisk();
  const log = await openOn(disk);
  await log.append([put("a", 1, "first")]);
  await log.append([put("b", 2, "second")]);
  const bytes = disk.contentOf(PATH);
  bytes[40] = (bytes[40] ?? 0) ^ 0xff;
  await assert.rejects(openOn(disk), { code: "Corrupt", message: /objects\.log: it is damaged at byte \d+/ });
  assert.deepEqual(disk.contentOf(PATH), bytes);
});

test("a file that is not one of ours is refused", async () => {
  const disk = new PowerCutDisk();
  const file = await disk.open(PATH);
  await file.write(Buffer.from("something else, and longer than a header"), 0);
  await assert.rejects(openOn(disk), { code: "Corrupt" });
});

test("whatever fails and whenever the power is cut, what was acknowledged is there and what was not is whole or gone", async () => {
  const scenario = fc.record({
    seeds: fc.array(fc.integer({ min: 0, max: 999 }), { minLength: 64, maxLength: 64 }),
    batches: fc.array(
      fc.array(fc.record({ key: fc.constantFrom("a", "b", "c"), size: fc.integer({ min: -1, max: 90 }) }), {
        minLength: 1,
        maxLength: 3,
      }),
      { minLength: 1, maxLength: 12 },
    ),
    failing: fc.array(fc.tuple(fc.integer({ min: 6, max: 60 }), fc.constantFrom("EIO", "ENOSPC")), { maxLength: 4 }),
    cutAt: fc.integer({ min: 0, max: 60 }),
  });
  await fc.assert(
    fc.asyncProperty(scenario, async ({ seeds, batches, failing, cutAt }) => {
      let turn = 0;
      const random = (): number => (seeds[turn++ % seeds.length] ?? 0) / 1000;
      const disk = new PowerCutDisk({ failing: new Map(failing), cutAt }, random);
      const acknowledged = new Map<string, string>();
      const doubtful: ReadonlyMap<string, string>[] = [];
      try {
        const log = await openOn(disk, 100);
        let revision = 0;
        for (const batch of batches) {
          const writes = batch.map(({ key, size }): LogWrite => {
            revision++;
            return {
              key,
              revision,
              value: size < 0 ? undefined : `${revision}:${"x".repeat(size)}`,
              isSecret: key === "c",
            };
          });
          const next = new Map(acknowledged);
          for (const { key, value } of writes) {
            if (value === undefined) next.delete(key);
            else next.set(key, value);
          }
          try {
            await log.append(writes);
            acknowledged.clear();
            for (const [key, value] of next) acknowledged.set(key, value);
            doubtful.length = 0;
          } catch (error) {
            assert.ok(error instanceof LogError, String(error));
            doubtful.push(next);
          }
        }
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        // The power was cut before the log was open: nothing was acknowledged.
      }
      const after = await openOn(disk.afterPowerCut());
      const found = JSON.stringify(values(after.state));
      const allowed = [acknowledged, ...doubtful].map((state) => JSON.stringify(Object.fromEntries([...state].sort())));
      assert.ok(allowed.includes(found), `found ${found}, allowed ${allowed.join(" or ")}`);
    }),
    { numRuns: 400 },
  );
});
