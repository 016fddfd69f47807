import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { StateFile } from "./state-file.ts";

describe("a state file", () => {
  let dir = "";
  let warnings = 0;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "state-"));
    warnings = 0;
  });
  afterEach(() => rmSync(dir, { recursive: true }));
  const path = (): string => join(dir, "state");
  const file = () =>
    new StateFile({ path: path(), log: { warn: () => void warnings++ } }, (document) =>
      typeof document === "number" ? document : undefined,
    );

  test("is loaded as it was saved; none is undefined", async () => {
    assert.equal(file().load(), undefined);
    await file().save(7);
    assert.equal(file().load(), 7);
    assert.equal(warnings, 0);
  });

  test("that would be too large to be loaded is not saved, and the one of before stays", async () => {
    const log = { warn: () => void warnings++ };
    const small = new StateFile({ path: path(), log, mostBytes: 5 }, (document) => document as number);
    await small.save(1234);
    await assert.rejects(small.save(12_345), /state file .*state would have 6 bytes, more than 5/);
    assert.equal(small.load(), 1234);
    assert.equal(warnings, 0);
  });

  for (const text of ["", "{", '"text"', "7 8"]) {
    test(`that is damaged (${text}) is moved aside`, async () => {
      writeFileSync(path(), text);
      assert.equal(file().load(), undefined);
      assert.deepEqual([existsSync(path()), existsSync(`${path()}.corrupt`), warnings], [false, true, 1]);
    });
  }

  const oddities: readonly (readonly [string, (path: string) => void])[] = [
    ["pipe", (at) => void execFileSync("mkfifo", [at])],
    ["directory", (at) => mkdirSync(at)],
    ["file of gigabytes", (at) => (writeFileSync(at, ""), truncateSync(at, 3 * 2 ** 30))],
    ["endless device", (at) => symlinkSync("/dev/zero", at)],
  ];
  for (const [name, make] of oddities) {
    test(`that is a ${name} is moved aside`, async () => {
      make(path());
      assert.equal(file().load(), undefined);
      assert.equal(warnings, 1);
      await file().save(7);
      assert.equal(file().load(), 7);
    });
  }
});
