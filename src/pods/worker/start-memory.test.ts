import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, pod, seen } from "../../../test/support/pods.ts";
import { FakeClock } from "../../lib/clock.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import { Journal } from "../journal.ts";
import { DEFAULT_CRASH_LIMITS } from "../plan/crash-backoff.ts";
import { StartMemory } from "./start-memory.ts";

test("hooks of containers that no longer exist are not remembered", () => {
  const web = pod().container("app").build();
  const identity = podIdentity(web);
  const clock = new FakeClock();
  const journal = new Journal({ clock }).of(identity);
  const memory = new StartMemory({ identity, journal, clock, crashLimits: DEFAULT_CRASH_LIMITS });
  for (let attempt = 0; attempt < 100; attempt++) memory.preStopped.add(`app-${attempt}`);
  memory.retainPreStopped(observed(web, [], [seen({ name: "app" }, { attempt: 99 })]));
  assert.deepEqual([...memory.preStopped], ["app-99"]);
});
