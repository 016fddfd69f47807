import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { CallsInFlight } from "./calls-in-flight.ts";

const path = (name: string): string => `/runtime.v1.RuntimeService/${name}`;

test("the oldest call that takes too long is named with its age, until it ends", async () => {
  const clock = new FakeClock();
  const calls = new CallsInFlight(clock);
  const end = calls.begin(path("RunPodSandbox"));
  await clock.advance(1000);
  calls.begin(path("ListContainers"));
  await clock.advance(60_000);
  assert.deepEqual(calls.stuck(60_000), { name: "run_podsandbox", ageMs: 61_000 });
  end();
  assert.equal(calls.stuck(60_000), undefined);
  await clock.advance(1);
  assert.deepEqual(calls.stuck(60_000)?.name, "list_containers");
});

test("pulls, stops and commands may take as long as they like", async () => {
  const clock = new FakeClock();
  const calls = new CallsInFlight(clock);
  calls.begin("/runtime.v1.ImageService/PullImage");
  calls.begin(path("StopContainer"));
  calls.begin(path("ExecSync"));
  await clock.advance(3_600_000);
  assert.equal(calls.stuck(60_000), undefined);
});

test("the end of any call is progress", async () => {
  const clock = new FakeClock();
  const calls = new CallsInFlight(clock);
  const began = calls.endedAt;
  const end = calls.begin(path("Status"));
  await clock.advance(500);
  end();
  assert.equal(calls.endedAt - began, 500);
});
