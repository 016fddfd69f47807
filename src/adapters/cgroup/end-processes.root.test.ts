import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { markedTag } from "../../../test/support/mark.ts";
import { cgroupMountsIn } from "../host/cgroups.ts";
import { readMountTable } from "../host/mount-table.ts";
import { endCgroupProcesses } from "./end-processes.ts";
import { hierarchiesOf } from "./hierarchy.ts";
import { directoryOf } from "./values.ts";

/** What they may have together at most: also those that ended count until the first process of the machine reaps them. */
const MOST = 4000;
const CHAINS = 20;
/** Each process starts the next one and ends: whoever lists them finds some that are gone when they are killed. */
const CHAIN = '#!/bin/sh\n"$0" &\n';

const hierarchies = hierarchiesOf(cgroupMountsIn(readMountTable()));
const root = hierarchies && directoryOf(hierarchies, "pids", "/");
const skip = root === undefined && "needs the pids controller";

test("programs that fork faster than they can be listed are ended at the first attempt", { skip }, async () => {
  const path = `/kts-test-${markedTag()}`;
  const directory = join(root ?? "", path);
  const pids = (): readonly string[] =>
    readFileSync(join(directory, "cgroup.procs"), "utf8").split("\n").filter(Boolean);
  const isEmpty = async (): Promise<boolean> => {
    for (let waited = 0; pids().length > 0 && waited < 10_000; waited += 20) await sleep(20);
    return pids().length === 0;
  };
  const place = mkdtempSync(join(tmpdir(), "chain-"));
  const script = join(place, "chain");
  writeFileSync(script, CHAIN, { mode: 0o755 });
  mkdirSync(directory);
  try {
    writeFileSync(join(directory, "pids.max"), String(MOST));
    for (let at = 0; at < CHAINS; at++) {
      // It waits in its cgroup before it begins.
      const first = spawn("sh", ["-c", `read _; exec ${script}`], { stdio: ["pipe", "ignore", "ignore"] });
      writeFileSync(join(directory, "cgroup.procs"), String(first.pid));
      first.stdin.end("\n");
    }
    await sleep(500);
    const before = pids();
    const others = (): boolean => pids().every((pid) => !before.includes(pid));
    for (let waited = 0; !others() && waited < 10_000; waited += 20) await sleep(20);
    assert.ok(pids().length > 0 && others(), `${before.join()} became ${pids().join()}`);
    endCgroupProcesses([root ?? ""], path);
    assert.ok(await isEmpty(), `${pids().length} are left`);
  } finally {
    // Without it they cannot go on, whatever the test found.
    rmSync(place, { recursive: true });
    endCgroupProcesses([root ?? ""], path);
    await isEmpty();
    rmdirSync(directory);
  }
});
