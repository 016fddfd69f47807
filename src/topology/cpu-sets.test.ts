import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import { silent } from "../lib/log.ts";
import { Wakes } from "../lib/wakes.ts";
import { parseCpuSet } from "../model/cpu-set.ts";
import { CpuState } from "./cpu/cpu-state.ts";
import { CpuSets } from "./cpu-sets.ts";

const { signal } = new AbortController();

/** CPU sets of one container that shares, and what the runtime was asked for. */
function cpuSetsOf(state: CpuState) {
  const updates: string[] = [];
  const faults: Error[] = [];
  const sets = new CpuSets(
    {
      state,
      wakes: new Wakes(new FakeClock()),
      log: silent,
      running: () => [{ id: "id-1", uid: "uid-of-web", name: "app" }],
      releaseStale: () => undefined,
      updateCpus: async (_id, cpus) => {
        updates.push(cpus);
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
      },
    },
    fixed(10_000),
  );
  return { sets, updates, faults };
}

test("a CPU set that could not be updated is updated at the next pass, and then no more", async () => {
  const { sets, updates, faults } = cpuSetsOf(new CpuState(parseCpuSet("0-3")));
  faults.push(new Error("runtime is busy"));
  for (let pass = 0; pass < 3; pass++) await sets.reconcile({ signal });
  assert.deepEqual(updates, ["0-3", "0-3"]);
});

test("a container keeps its CPU set while the shared pool is empty", async () => {
  const state = new CpuState(parseCpuSet("2-3"));
  const { sets, updates } = cpuSetsOf(state);
  await sets.reconcile({ signal });
  for (const shared of ["", "2-3", "3"]) {
    state.shared = parseCpuSet(shared);
    await sets.reconcile({ signal });
  }
  assert.deepEqual(updates, ["2-3", "3"]);
});
