import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentLauncher } from "./launcher.ts";
import { lazyLauncher } from "./lazy-launcher.ts";

test("the launcher is built at its first use, and once", async () => {
  let built = 0;
  const lazy = lazyLauncher(async () => {
    built++;
    // Only this one is called.
    return { lockConfigStore: async (directory: string) => () => void directory } as unknown as AgentLauncher;
  });
  assert.equal(built, 0);
  await lazy.lockConfigStore("/a");
  await lazy.lockConfigStore("/b");
  assert.equal(built, 1);
});
