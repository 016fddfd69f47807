import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";

/** What 200 hostile containers may keep in memory. */
const LIMIT_BYTES = 30 * 1024 * 1024;
const OUTPUT_BYTES = 64 * 1024;
const PODS = 50;
const HOOK = { lifecycle: { postStart: { exec: { command: ["say", "y".repeat(10_000)] } } } };

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void; // reason: the function of V8 has no type

function usedBytes(): number {
  collect();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + external + arrayBuffers;
}

/** Hooks print and fail, or the runtime refuses the start at length; each time in other words. */
function hostileRing(): FakeRing {
  let calls = 0;
  const longText = (): string => `${++calls} ${"x".repeat(OUTPUT_BYTES)}`;
  const noisy = { exec: () => ({ exitCode: 1, stdout: longText(), stderr: longText() }) };
  const refused = {
    get failsToStart() {
      return longText();
    },
  };
  return new FakeRing({ a: noisy, b: noisy, c: noisy, d: noisy, refused });
}

test("200 hostile containers leave little in memory", async () => {
  const pods = Array.from({ length: PODS }, (_, index) => {
    const hostile = pod(`hostile-${index}`);
    for (const name of ["a", "b", "c", "d"]) hostile.container(name, HOOK);
    return hostile.build();
  });
  const ring = hostileRing();
  const before = usedBytes();
  await ring.want(...pods);
  for (let round = 0; round < 25; round++) await ring.clock.advance(10_000);
  const grown = usedBytes() - before;
  const explanation = JSON.stringify(ring.view.explain("uid-of-hostile-0"));
  ring.stopAgent();
  const restarts = ring.status("hostile-0")?.containerStatuses?.map(({ restartCount }) => restartCount) ?? [];
  assert.ok(Math.min(...restarts) >= 2, `each was tried again: ${restarts.join(" ")}`);
  assert.ok(grown < LIMIT_BYTES, `${Math.round(grown / 1024 / 1024)} MB are kept`);
  assert.ok(explanation.length < 400_000, `${explanation.length} bytes explain one pod`);
});

for (const name of ["a", "refused"]) {
  test(`messages about a failed start of ${name} are bounded and name what was left out`, async () => {
    const ring = hostileRing();
    await ring.want(pod().container(name, HOOK).build());
    const messages: string[] = [];
    for (let round = 0; round < 10; round++) {
      await ring.clock.advance(100);
      messages.push(ring.status()?.containerStatuses?.[0]?.state?.waiting?.message ?? "");
    }
    const events = ring.journal.events(0).map((event) => Buffer.byteLength(event.message));
    const errors = ring.journal.find("uid-of-web")?.distinctErrors ?? [];
    ring.stopAgent();
    assert.ok(messages.some((message) => /omitted\)/.test(message)));
    for (const message of messages) assert.ok(Buffer.byteLength(message) <= 4096, `${message.length} characters`);
    assert.ok(Math.max(...events) <= 2048, events.join(" "));
    assert.match(errors[0]?.message ?? "", /omitted\)/);
  });
}
