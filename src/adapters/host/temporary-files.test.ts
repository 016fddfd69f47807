import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { PluginDirectory } from "../devices/plugin-directory.ts";
import { checkpointFiles } from "./checkpoint-files.ts";
import { StateFile } from "./state-file.ts";
import { removeTemporaryFiles } from "./temporary-files.ts";

/** The pid of an agent that was killed: no process has one as high. */
const KILLED = 99_999_999;

describe("what a write left behind that was cut off by a kill", () => {
  let dir = "";
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "temporary-"));
  });
  afterEach(() => rmSync(dir, { recursive: true }));
  const put = (...names: readonly string[]): void => {
    for (const name of names) writeFileSync(join(dir, name), "half");
  };

  test("is removed, but not what this process writes now, nor what has another name", () => {
    const kept = [
      `.state.${process.pid}.3.tmp`,
      `.state.old.${KILLED}.3.tmp`,
      `.other.${KILLED}.3.tmp`,
      `state.${KILLED}.3.tmp`,
      ".state.x.3.tmp",
      "state",
    ];
    put(...kept, `.state.${KILLED}.3.tmp`, `.state.${KILLED}.44.tmp`);
    removeTemporaryFiles(join(dir, "state"));
    assert.deepEqual(readdirSync(dir).sort(), [...kept].sort());
  });

  test("a directory of that name, and a missing directory, are left alone", () => {
    mkdirSync(join(dir, `.state.${KILLED}.1.tmp`));
    removeTemporaryFiles(join(dir, "state"));
    removeTemporaryFiles(join(dir, "missing", "state"));
    assert.deepEqual(readdirSync(dir), [`.state.${KILLED}.1.tmp`]);
  });

  const CHECKPOINT = "kubelet_internal_checkpoint";
  const silent = { warn: () => undefined };
  const loads: readonly (readonly [string, string, () => unknown])[] = [
    ["a state file", "state", () => new StateFile({ path: join(dir, "state"), log: silent }, () => 1).load()],
    ["a checkpoint of CPUs or memory", "cpu_manager_state", () => checkpointFiles.read(join(dir, "cpu_manager_state"))],
    ["the checkpoint of devices", CHECKPOINT, () => new PluginDirectory(dir).readCheckpoint()],
  ];
  for (const [what, name, load] of loads) {
    test(`goes when ${what} is loaded`, () => {
      put(name, `.${name}.${KILLED}.1.tmp`);
      load();
      assert.deepEqual(readdirSync(dir), [name]);
    });
  }
});
