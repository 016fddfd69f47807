import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { agentOptions, OptionStore, parseAgentOptions } from "../config/index.ts";
import type { Container, Pod, ResourceRequirements } from "../model/generated/types.ts";
import { resizeProblem } from "./resize-problem.ts";

const CPU = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
const MEMORY = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"';
const BOTH = ["--cpu-manager-policy=static", "--memory-manager-policy=Static"];

function both(cpu: string, memory = "1Gi"): ResourceRequirements {
  return { requests: { cpu, memory }, limits: { cpu, memory } };
}

function sized(resources: ResourceRequirements, more: readonly Partial<Container>[] = []): Pod {
  const made = pod("web").container("app", { resources });
  for (const [at, each] of more.entries()) made.init(`init${at}`, each);
  return made.build();
}

const before = sized(both("1"));
const burstable = (cpu: string): Pod => sized({ requests: { cpu, memory: "1Gi" } });
const cases: readonly { name: string; flags?: readonly string[]; from?: Pod; to: Pod; want: string | undefined }[] = [
  { name: "other CPUs with both policies", to: sized(both("2")), want: CPU },
  { name: "other memory with both policies", to: sized(both("1", "2Gi")), want: MEMORY },
  { name: "the same, written otherwise", to: sized(both("1000m", "1024Mi")), want: undefined },
  { name: "other CPUs without the policy for CPUs", flags: BOTH.slice(1), to: sized(both("2")), want: undefined },
  {
    name: "other memory without the policy for memory",
    flags: BOTH.slice(0, 1),
    to: sized(both("1", "2Gi")),
    want: undefined,
  },
  {
    name: "other CPUs with their gate",
    flags: [...BOTH, "--feature-gates=InPlacePodVerticalScalingExclusiveCPUs=true"],
    to: sized(both("2")),
    want: undefined,
  },
  {
    name: "other memory with the gate for CPUs",
    flags: [...BOTH, "--feature-gates=InPlacePodVerticalScalingExclusiveCPUs=true"],
    to: sized(both("1", "2Gi")),
    want: MEMORY,
  },
  {
    name: "other memory with its gate",
    flags: [...BOTH, "--feature-gates=InPlacePodVerticalScalingExclusiveMemory=true"],
    to: sized(both("1", "2Gi")),
    want: undefined,
  },
  { name: "other CPUs of a pod that is not Guaranteed", from: burstable("1"), to: burstable("2"), want: undefined },
  {
    name: "other CPUs of one of several containers",
    from: sized(both("1"), [{ resources: both("1") }, { resources: both("1") }]),
    to: sized(both("1"), [{ resources: both("1") }, { resources: both("2") }]),
    want: CPU,
  },
];

describe("a resize", () => {
  for (const { name, flags = BOTH, from = before, to, want } of cases) {
    test(`of ${name} is ${want === undefined ? "feasible" : "infeasible"}`, () => {
      const options = new OptionStore(agentOptions, parseAgentOptions(["--root-dir=/root", ...flags]).values).current;
      assert.equal(resizeProblem(options, to, from), want);
    });
  }

  test("of a container does not need the gate of pods as a whole, and one of a pod as a whole does", () => {
    const gate = "InPlacePodLevelResourcesVerticalScaling";
    const flags = ["--root-dir=/root", `--feature-gates=${gate}=false`];
    const options = new OptionStore(agentOptions, parseAgentOptions(flags).values).current;
    const level = (resources: ResourceRequirements): Pod => ({ ...before, spec: { ...before.spec, resources } });
    assert.equal(resizeProblem(options, sized(both("2")), before), undefined);
    assert.equal(resizeProblem(options, level(both("2")), level(both("2000m"))), undefined);
    const changes: readonly [ResourceRequirements, ResourceRequirements][] = [
      [both("2"), both("3")],
      [{ limits: { cpu: "2" } }, { limits: { cpu: "2" }, requests: { cpu: "1" } }],
      [{ limits: { cpu: "2" } }, {}],
    ];
    for (const [from, to] of changes) {
      assert.equal(resizeProblem(options, level(to), level(from)), `${gate} is disabled`);
    }
  });
});
