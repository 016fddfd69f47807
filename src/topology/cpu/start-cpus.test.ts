import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { machine } from "../../../test/support/machine.ts";
import { formatCpuSet, parseCpuSet } from "../../model/cpu-set.ts";
import { CpuLayout } from "./cpu-layout.ts";
import { CpuState } from "./cpu-state.ts";
import { type CpuSettings, staticCpuRules, validCpuState } from "./start-cpus.ts";

const layout = new CpuLayout(machine({ sockets: 1, cores: 4 }));

function settings(given: Partial<CpuSettings> & { readonly by?: string } = {}): CpuSettings {
  const { by = "", ...more } = given;
  return { policyOptions: {}, reserved: parseCpuSet(by), reservedMilli: 2000, topologyPolicy: "none", ...more };
}

describe("reserved CPUs", () => {
  const cases = [
    { name: "are the lowest cores if none are named", given: settings(), want: "0,4" },
    { name: "are whole CPUs for a part of one", given: settings({ reservedMilli: 1001 }), want: "0,4" },
    { name: "are those that are named", given: settings({ by: "3,7" }), want: "3,7" },
    { name: "are no more than there are", given: settings({ by: "0-7", reservedMilli: 8000 }), want: "0-7" },
  ];
  for (const { name, given, want } of cases) {
    test(name, () => assert.equal(formatCpuSet(staticCpuRules(layout, given).reserved), want));
  }

  const problems = [
    {
      name: "others than the node reserves",
      given: settings({ by: "0" }),
      why: /^ConfigurationError: \[cpumanager\] unable to reserve the required amount of CPUs \(size of 0 did not equal 2\)$/,
    },
    {
      name: "that the machine does not have",
      given: settings({ by: "0,99" }),
      why: /unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: 99$/,
    },
    {
      name: "none",
      given: settings({ reservedMilli: 0 }),
      why: /requires systemreserved.cpu \+ kubereserved.cpu to be greater than zero/,
    },
  ];
  for (const { name, given, why } of problems) {
    test(`cannot be ${name}`, () => assert.throws(() => staticCpuRules(layout, given), why));
  }

  test("cannot be aligned to sockets where a NUMA node has several, or with one NUMA node for each pod", () => {
    const policyOptions = { "align-by-socket": "true" };
    const { cpus } = machine({ sockets: 2, cores: 2 });
    const one = new CpuLayout({ cpus: cpus.map((place) => ({ ...place, numa: 0 })) });
    assert.throws(
      () => staticCpuRules(one, settings({ policyOptions })),
      /number of sockets are more than number of NUMA/,
    );
    const single = settings({ policyOptions, topologyPolicy: "single-numa-node" });
    assert.throws(() => staticCpuRules(layout, single), /incompatible with CPUManager align-by-socket/);
    staticCpuRules(layout, settings({ policyOptions, topologyPolicy: "restricted" }));
  });
});

describe("a persisted CPU state", () => {
  const rules = staticCpuRules(layout, settings({ by: "0,4" }));
  const strict = staticCpuRules(layout, settings({ by: "0,4", policyOptions: { "strict-cpu-reservation": "true" } }));
  const stateOf = (shared: string, app = "", pod = ""): CpuState =>
    new CpuState(parseCpuSet(shared), {
      entries: app === "" ? [] : [["u", new Map([["app", parseCpuSet(app)]])]],
      pods: pod === "" ? [] : [["u", parseCpuSet(pod)]],
    });
  const fine = [
    { name: "of shared CPUs and those of containers", state: stateOf("0,2-4,6-7", "1,5") },
    { name: "of CPUs of a pod that none of its containers has", state: stateOf("0,3-4,7", "1,5", "1-2,5-6") },
  ];
  for (const { name, state } of fine) {
    test(`${name} is continued`, () => assert.equal(validCpuState(layout, rules, state), state));
  }

  test("of nothing begins with all CPUs, those apart that are strictly reserved", () => {
    const shared = [rules, strict].map((each) => formatCpuSet(validCpuState(layout, each, new CpuState()).shared));
    assert.deepEqual(shared, ["0-7", "1-3,5-7"]);
  });

  const problems = [
    {
      name: "has CPUs of a container that all share",
      state: stateOf("0-4,6-7", "1,5"),
      why: /^Error: pod: u, container: app cpuset: "1,5" overlaps with default cpuset "0-4,6-7"$/,
    },
    {
      name: "has CPUs of a pod that all share",
      state: stateOf("0-4,6-7", "", "1,5"),
      why: /^Error: pod: u cpuset: "1,5" overlaps with default cpuset "0-4,6-7"$/,
    },
    { name: "has nothing that is shared", state: stateOf("", "0-7"), why: /^Error: default cpuset cannot be empty$/ },
    {
      name: "lacks a reserved CPU among the shared ones",
      state: stateOf("1-7", "0"),
      why: /^Error: not all reserved cpus: "0,4" are present in defaultCpuSet: "1-7"$/,
    },
    {
      name: "lacks a CPU of the machine",
      state: stateOf("0,2-4,6"),
      why: /"0-7" doesn't match with CPUs in state "0,2-4,6"/,
    },
  ];
  for (const { name, state, why } of problems) {
    test(`that ${name} cannot be continued`, () => assert.throws(() => validCpuState(layout, rules, state), why));
  }
});
