import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { kernelProblems, setUpKernel } from "./kernel-setup.ts";

const GOOD: Readonly<Record<string, number>> = {
  "vm.overcommit_memory": 1,
  "vm.panic_on_oom": 0,
  "kernel.panic": 10,
  "kernel.panic_on_oops": 1,
  "kernel.keys.root_maxkeys": 1_000_000,
  "kernel.keys.root_maxbytes": 25_000_000,
};

/** A kernel with these settings; those in `fixed` cannot be changed, undefined ones are not there. */
function kernel(changes: Record<string, number | undefined>, fixed: readonly string[] = []) {
  const values = new Map<string, number | undefined>(Object.entries({ ...GOOD, ...changes }));
  const warnings: string[] = [];
  const settings = {
    read: (name: string): number => {
      const value = values.get(name);
      if (value === undefined) throw new Error("ENOENT: no such file");
      return value;
    },
    write: (name: string, value: number): void => {
      if (fixed.includes(name)) throw new Error("EPERM: operation not permitted");
      values.set(name, value);
    },
  };
  const log = {
    info: () => undefined,
    warn: (_: string, fields?: object) => void warnings.push(JSON.stringify(fields)),
  };
  return { settings, values, warnings, log };
}

describe("settings of the kernel", () => {
  test("that are as needed are left alone", () => {
    const { settings, warnings, log } = kernel({}, Object.keys(GOOD));
    assert.deepEqual(kernelProblems(settings), []);
    setUpKernel(settings, log);
    assert.deepEqual(warnings, []);
  });

  test("that are not are changed", () => {
    const { settings, values, warnings, log } = kernel({ "vm.panic_on_oom": 1, "kernel.panic": 0 });
    setUpKernel(settings, log);
    assert.deepEqual(Object.fromEntries(values), GOOD);
    assert.deepEqual(warnings, []);
  });

  test("that the kernel refuses are one warning each, with the consequence", () => {
    const { settings, values, warnings, log } = kernel(
      { "kernel.panic": 0, "vm.overcommit_memory": 0, "kernel.keys.root_maxkeys": undefined },
      ["kernel.panic"],
    );
    setUpKernel(settings, log);
    assert.equal(values.get("vm.overcommit_memory"), 1, "the others are changed");
    assert.equal(warnings.length, 2);
    assert.match(warnings.join(), /kernel\.panic.*does not restart after 10 seconds.*EPERM/);
    assert.match(warnings.join(), /root_maxkeys.*lack of keys.*ENOENT/);
  });

  test("that are protected are named with what to do", () => {
    const { settings } = kernel({ "vm.overcommit_memory": 2 });
    assert.deepEqual(kernelProblems(settings), [
      "protectKernelDefaults: true, but vm.overcommit_memory is 2; set it to 1 (sysctl -w vm.overcommit_memory=1)",
    ]);
  });
});
