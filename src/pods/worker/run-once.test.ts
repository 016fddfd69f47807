import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { PodExplanation } from "../../model/step.ts";
import { judge, type OnceResult, runOnce } from "./run-once.ts";

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

test("a program that exits right after its start does not count as running", async () => {
  const ring = new FakeRing({ job: { exitAfterMs: 100, exitCode: 7 } });
  await ring.want(pod("work").container("job").restart("Never").build());
  assert.equal(ring.status("work")?.phase, "Running");
  const result = once(ring);
  await ring.clock.advance(500);
  assert.deepEqual((await result)[0]?.outcome, "job exited with code 7");
});

test("a failed pod is a bad result with its exit code", async () => {
  const ring = new FakeRing({ job: { exitAfterMs: 500, exitCode: 4 } });
  await ring.want(pod("work").container("job").restart("Never").build());
  await ring.clock.advance(500);
  const result = once(ring);
  assert.deepEqual(
    (await result).map(({ ok, outcome }) => [ok, outcome]),
    [[false, "job exited with code 4"]],
  );
});

test("an image that cannot be pulled is tried four times", async () => {
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

test("a failure while the pod was stopped does not hide why it failed", () => {
  const error = { message: "ttrpc: closed", count: 1, first: 0, last: 0 };
  const main = { name: "main", kind: "regular", image: "", id: "", state: "terminated", reason: "Error", message: "" };
  const failed = {
    uid: "u",
    name: "p",
    namespace: "n",
    source: "file",
    state: "Error",
    phase: "Failed",
    ip: "",
    seenAt: 0,
    readyContainers: 0,
    totalContainers: 1,
    restarts: 0,
    steps: [],
    events: [],
    warnings: [],
    containers: [{ ...main, ready: false, restarts: 0, exitCode: 7 }],
    errors: [{ ...error, step: "terminate" }],
  } as PodExplanation; // reason: the literals of the spread objects are wider than the unions
  assert.equal(judge(failed, 3)?.outcome, "main exited with code 7");
  const pull = { ...failed, errors: [{ ...error, step: "pull" as const, message: "no such image" }, ...failed.errors] };
  assert.equal(judge(pull, 3)?.outcome, "no such image");
});
