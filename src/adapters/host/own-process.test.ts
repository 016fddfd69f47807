import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

/** In a process of its own: a limit that was lowered for the test's would stay. */
function inChild(limits: { oomScoreAdj: number; maxOpenFiles: number }, hard: number) {
  const script = `
    const { setOwnLimits } = await import(${JSON.stringify(join(import.meta.dirname, "own-process.ts"))});
    const { readFileSync } = await import("node:fs");
    const refused = await setOwnLimits(${JSON.stringify(limits)});
    const files = /^Max open files\\s+(\\d+)\\s+(\\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
    const score = Number(readFileSync("/proc/self/oom_score_adj", "utf8"));
    const core = Number.parseInt(readFileSync("/proc/self/coredump_filter", "utf8"), 16);
    console.log(JSON.stringify({ refused, soft: Number(files[1]), hard: Number(files[2]), score, core }));
  `;
  const node = [process.execPath, "--import", "tsx", "--input-type=module", "-e", `'${script}'`].join(" ");
  const { stdout, stderr } = spawnSync("sh", ["-c", `ulimit -n ${hard} && ${node}`], { encoding: "utf8" });
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout) as { refused: string[]; soft: number; hard: number; score: number; core: number };
}

test("a lower limit of open files sets the soft limit only", () => {
  const { core: _core, ...limits } = inChild({ oomScoreAdj: 17, maxOpenFiles: 500 }, 800);
  assert.deepEqual(limits, { soft: 500, hard: 800, score: 17, refused: [] });
});

test("a core file of the agent has no memory: secrets are in it", () => {
  assert.equal(inChild({ oomScoreAdj: 17, maxOpenFiles: 500 }, 800).core, 0x10);
});

test("a limit above the kernel's is reported, and the highest possible one is set", () => {
  const { soft, hard, refused } = inChild({ oomScoreAdj: 0, maxOpenFiles: 900 }, 800);
  // With the right to raise it, it is raised.
  if (refused.length === 0) assert.deepEqual({ soft, hard }, { soft: 900, hard: 900 });
  else {
    assert.deepEqual({ soft, hard }, { soft: 800, hard: 800 });
    assert.match(refused.join(), /^maxOpenFiles 900: the limit stays at 800: /);
  }
});
