import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { allowedFiles, skipsNotAllowed } from "./allowed-skips.ts";

const apparmor = { file: "test/integration/lifecycle-kernel.ts", test: "AppArmor", reason: "none here" };
const had = process.env["KUBELET_TEST_VM"];

afterEach(() => {
  if (had === undefined) delete process.env["KUBELET_TEST_VM"];
  else process.env["KUBELET_TEST_VM"] = had;
});

test("what is on the list may be left out, by file and name", () => {
  delete process.env["KUBELET_TEST_VM"];
  const others = [
    { ...apparmor, test: "Seccomp" },
    { ...apparmor, file: "test/integration/volumes.ts" },
  ];
  assert.deepEqual(skipsNotAllowed([apparmor, ...others]), others);
});

test("in the emulated machine only what it cannot run either", () => {
  process.env["KUBELET_TEST_VM"] = "1";
  assert.deepEqual(skipsNotAllowed([apparmor]), [apparmor]);
});

test("every file on the list exists", () => {
  const root = join(import.meta.dirname, "..");
  assert.deepEqual(
    allowedFiles().filter((file) => !existsSync(join(root, file))),
    [],
  );
});
