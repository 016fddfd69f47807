import assert from "node:assert/strict";

/** How many times slower than a common one this machine is, for an emulated one: limits that end a hanging test grow. */
export const SLOWNESS = Number(process.env["KUBELET_TEST_SLOW"] ?? 1);
/** Long enough for a busy machine with two cores: a deadline ends a test that hangs, it judges no speed. */
const LIMIT_MS = 30_000;
const POLL_MS = 40;
/** With KUBELET_TEST_STEPS=1 each step that a test waited for is printed with the time since the start of its suite. */
const ARE_STEPS_SHOWN = process.env["KUBELET_TEST_STEPS"] === "1";

/** Asks until the answer is one, and gives it. Fails after the limit with the last thing seen. */
export async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  { limitMs = LIMIT_MS, seen = () => "" }: { limitMs?: number; seen?: () => unknown } = {},
): Promise<T> {
  const deadline = performance.now() + limitMs * SLOWNESS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) {
      if (ARE_STEPS_SHOWN) process.stderr.write(`${(performance.now() / 1000).toFixed(1)} s: ${what}\n`);
      return answer;
    }
    if (performance.now() > deadline) {
      const last = seen();
      const shown = typeof last === "string" ? last : JSON.stringify(last, undefined, 1);
      assert.fail(`not within ${(limitMs * SLOWNESS) / 1000} s: ${what}${shown === "" ? "" : `\n${shown}`}`);
    }
    await pause(POLL_MS);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
