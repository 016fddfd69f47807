import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeRing } from "../../test/support/ring.ts";
import { type OnceResult, runOnce } from "./run-once.ts";

function once(ring: FakeRing, limitMs = 60_000): Promise<OnceResult[]> {
  const { view, clock } = ring;
  return runOnce(
    {
      clock,
      sourcesReady: () => true,
      pods: () => view.summaries().flatMap(({ uid }) => view.explain(uid) ?? []),
      onChange: (fn, signal) => view.onChange(fn, signal),
    },
    { limitMs, retries: 3 },
    { signal: new AbortController().signal },
  );
}

test("running and succeeded pods are good results", async () => {
  const ring = new FakeRing({ job: { exitAfterMs: 500 } });
  await ring.want(pod("web").container("app").build(), pod("work").container("job").restart("Never").build());
  await ring.clock.advance(500);
  const result = once(ring);
  await ring.clock.advance(500);
  assert.deepEqual(
    (await result).map(({ name, ok, outcome }) => [name, ok, outcome]),
    [
      ["web", true, "running"],
      ["work", true, "succeeded"],
    ],
  );
});

test("a program that ends right after its start does not count as running", async () => {
  const ring = new FakeRing({ job: { exitAfterMs: 100, exitCode: 7 } });
  await ring.want(pod("work").container("job").restart("Never").build());
  assert.equal(ring.status("work")?.phase, "Running");
  const result = once(ring);
  await ring.clock.advance(500);
  assert.deepEqual((await result)[0]?.outcome, "job ended with exit code 7");
});

test("a failed pod is a bad result with its exit code", async () => {
  const ring = new FakeRing({ job: { exitAfterMs: 500, exitCode: 4 } });
  await ring.want(pod("work").container("job").restart("Never").build());
  await ring.clock.advance(500);
  const result = once(ring);
  assert.deepEqual(
    (await result).map(({ ok, outcome }) => [ok, outcome]),
    [[false, "job ended with exit code 4"]],
  );
});

test("an image that does not come is tried four times, not for ever", async () => {
  const ring = new FakeRing();
  await ring.wantAsIs(pod("web").container("app").build());
  const result = once(ring, 600_000);
  await ring.clock.advance(200_000);
  const [verdict] = await result;
  assert.equal(verdict?.ok, false);
  assert.match(verdict?.outcome ?? "", /^pull failed 4 times/);
});

test("what is not running in time has failed, with what it waits for", async () => {
  const ring = new FakeRing();
  ring.runtime.image("app:1", { state: "pullable" });
  ring.runtime.control.delay("pullImage", 1_000_000);
  await ring.wantAsIs(pod("web").container("app").build());
  const result = once(ring);
  await ring.clock.advance(60_000);
  assert.match((await result)[0]?.outcome ?? "", /^not running after 60s \(pull: app:1/);
});
