import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { Abortable } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import { Journal } from "../journal.ts";
import { PreStopHook, PreStopHooks } from "./pre-stop-hooks.ts";

test("hooks of containers that no longer run are aborted and dropped", () => {
  const clock = new FakeClock();
  const journal = new Journal({ clock }).of(podIdentity(pod().container("app").build()));
  const hooks = new PreStopHooks();
  const signals: AbortSignal[] = [];
  const hang = ({ signal }: Abortable): Promise<void> => {
    signals.push(signal);
    return new Promise(() => undefined);
  };
  const of = { container: "app", journal, clock };
  for (let attempt = 0; attempt < 100; attempt++)
    hooks.begin(`app-${attempt}`, () => new PreStopHook(of, hang, new AbortController().signal));
  hooks.retain(new Set(["app-99"]));
  assert.deepEqual(hooks.ids, ["app-99"]);
  assert.equal(signals.filter(({ aborted }) => aborted).length, 99);
  assert.equal(signals.at(-1)?.aborted, false);
});
