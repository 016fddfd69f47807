import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TopologyNode } from "../../test/support/topology-node.ts";
import { ORIGINAL_OUTCOMES } from "../../test/support/topology-outcomes.ts";
import { RESERVED_MI, type TopologyScenario, topologyScenario } from "../../test/support/topology-scenarios.ts";

const REASONS: Readonly<Record<string, string>> = {
  TopologyAffinityError: "T",
  UnexpectedAdmissionError: "U",
  SMTAlignmentError: "S",
};

function nodeOf(scenario: TopologyScenario): TopologyNode {
  const pairs = (flag: string, given: Readonly<Record<string, string>>): readonly string[] =>
    Object.entries(given).map(([name, value]) => `--${flag}=${name}=${value}`);
  const flags = [
    "--cpu-manager-policy=static",
    ...pairs("cpu-manager-policy-options", scenario.cpuOptions),
    `--memory-manager-policy=${scenario.memoryPolicy}`,
    `--reserved-memory=0:memory=${RESERVED_MI}Mi`,
    `--topology-manager-policy=${scenario.topologyPolicy}`,
    `--topology-manager-scope=${scenario.topologyScope}`,
    ...pairs("topology-manager-policy-options", scenario.topologyOptions),
  ];
  return new TopologyNode(scenario.machine, flags, { cpus: scenario.reservedCpus, memoryMi: RESERVED_MI });
}

async function outcomeOf(scenario: TopologyScenario): Promise<string> {
  const node = nodeOf(scenario);
  const outcomes: string[] = [];
  for (const step of scenario.steps) {
    const rejection = "admit" in step ? await node.admit(step.admit) : undefined;
    if ("remove" in step) node.remove(step.remove);
    await node.clock.advance(0);
    const files = ["cpu_manager_state", "memory_manager_state"].map((name) => node.files.get(`/root/${name}`) ?? "{}");
    const checksums = files.map((text) => (JSON.parse(text) as { readonly checksum: number }).checksum);
    outcomes.push([rejection === undefined ? "+" : REASONS[rejection.reason], ...checksums].join(" "));
  }
  return outcomes.join("; ");
}

describe("the managers of Kubernetes decide and persist the same", () => {
  for (const [index, want] of ORIGINAL_OUTCOMES.entries()) {
    test(`in scenario ${index + 1}`, async () => {
      assert.equal(await outcomeOf(topologyScenario(index + 1)), want);
    });
  }
});
