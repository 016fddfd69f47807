import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { SandboxImage } from "./sandbox-image.ts";

const { signal } = new AbortController();

test("the runtime is asked once, and again after a minute if it did not tell", async () => {
  const clock = new FakeClock();
  const answers: (string | undefined | Error)[] = [new Error("unavailable"), undefined, "pause:3"];
  let asked = 0;
  const runtime = {
    sandboxImage: async () => {
      const answer = answers[asked++];
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const image = new SandboxImage({ clock, runtime });
  for (let times = 1; times <= 3; times++) {
    await image.find({ signal });
    await image.find({ signal });
    assert.equal(asked, times);
    await clock.advance(60_000);
  }
  assert.equal(image.name, "pause:3");
  await image.find({ signal });
  assert.equal(asked, 3);
});
