import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import type { NodeUsageReport } from "../model/node-usage.ts";
import { UsageTurns } from "./usage-turns.ts";

// Reason: what is measured is passed on as it is.
const report = {} as NodeUsageReport;

const cases = [
  { name: "a quick sample is followed by the next after two seconds", tookMs: 0, isShown: true, want: 2000 },
  { name: "the longer a sample takes, the later the next one is", tookMs: 100, isShown: true, want: 7500 },
  { name: "no sample is later than 15 seconds", tookMs: 10_000, isShown: true, want: 15_000 },
  { name: "what is not shown is not measured", tookMs: 100, isShown: false, want: 15_000 },
];
for (const { name, tookMs, isShown, want } of cases) {
  test(name, async () => {
    const clock = new FakeClock();
    await clock.advance(60_000);
    let samples = 0;
    const usage = async (): Promise<NodeUsageReport> => {
      samples++;
      await clock.sleep(tookMs);
      return report;
    };
    const turns = new UsageTurns({ clock, usage }, { isShown });
    const { signal } = manyListeners();
    assert.equal(turns.waitMs(), 0);
    const first = turns.next({ signal });
    await clock.advance(isShown ? tookMs : 0);
    assert.equal(await first, isShown ? report : undefined);
    assert.equal(turns.waitMs(), want);
    assert.equal(await turns.next({ signal }), undefined, "not before its turn");
    assert.equal(samples, isShown ? 1 : 0);
  });
}

test("a sample that fails is an error, unless the stream has ended", async () => {
  const usage = (): Promise<NodeUsageReport> => Promise.reject(new Error("no cgroups"));
  const end = manyListeners();
  const turns = () => new UsageTurns({ clock: new FakeClock(), usage }, { isShown: true });
  await assert.rejects(turns().next(end), /no cgroups/);
  end.abort();
  assert.equal(await turns().next(end), undefined);
});
