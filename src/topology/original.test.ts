import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TopologyNode } from "../../test/support/topology-node.ts";
import {
  ORIGINAL_OUTCOMES,
  ORIGINAL_POD_LEVEL_OUTCOMES,
  ORIGINAL_WALKS,
} from "../../test/support/topology-outcomes.ts";
import { RESERVED_MI, type TopologyScenario, topologyScenario } from "../../test/support/topology-scenarios.ts";
import { fnv1a32 } from "../model/fnv.ts";

const REASONS: Readonly<Record<string, string>> = {
  TopologyAffinityError: "T",
  UnexpectedAdmissionError: "U",
  SMTAlignmentError: "S",
  EmptyPodSharedPoolError: "E",
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
    `--feature-gates=PodLevelResourceManagers=${scenario.isPodLevel}`,
  ];
  return new TopologyNode(scenario.machine, flags, { cpus: scenario.reservedCpus, memoryMi: RESERVED_MI });
}

async function outcomesOf(scenario: TopologyScenario): Promise<readonly string[]> {
  const node = nodeOf(scenario);
  const outcomes: string[] = [];
  for (const step of scenario.steps) {
    const rejection = "admit" in step ? await node.admit(step.admit) : undefined;
    if ("remove" in step) node.remove(step.remove);
    await node.clock.advance(0);
    if ("restart" in step) node.start();
    const files = ["cpu_manager_state", "memory_manager_state"].map((name) => node.files.get(`/root/${name}`) ?? "{}");
    const checksums = files.map((text) => (JSON.parse(text) as { readonly checksum: number }).checksum);
    const verdict = "restart" in step ? "R" : rejection === undefined ? "+" : REASONS[rejection.reason];
    outcomes.push([verdict, ...checksums].join(" "));
  }
  return outcomes;
}

async function outcomeOf(scenario: TopologyScenario): Promise<string> {
  return (await outcomesOf(scenario)).join("; ");
}

describe("the managers of Kubernetes decide and persist the same", () => {
  for (const [index, want] of ORIGINAL_OUTCOMES.entries()) {
    test(`in scenario ${index + 1}`, async () => {
      assert.equal(await outcomeOf(topologyScenario(index + 1)), want);
    });
  }
  for (const [index, want] of ORIGINAL_POD_LEVEL_OUTCOMES.entries()) {
    test(`with pod-level resources in scenario ${index + 1}`, async () => {
      assert.equal(await outcomeOf(topologyScenario(index + 1, { isPodLevel: true })), want);
    });
  }
  for (const [index, want] of ORIGINAL_WALKS.entries()) {
    test(`after each of 1000 admissions, removals and restarts of walk ${index + 1}`, async () => {
      const outcomes = await outcomesOf(topologyScenario(index + 1, { length: 1000 }));
      const hashes = want.map((_, part) => {
        const text = outcomes.slice(part * 100, part * 100 + 100).join("; ");
        return fnv1a32(new TextEncoder().encode(text));
      });
      assert.deepEqual(hashes, want);
    });
  }
});
