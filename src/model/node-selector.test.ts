import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { NodeSelectorRequirement } from "./generated/types.ts";
import { matchesNodeSelector } from "./node-selector.ts";

const node = { name: "here", labels: { disk: "ssd", slots: "8" } };

describe("a node selector", () => {
  const requirements: { needs: NodeSelectorRequirement; want: boolean }[] = [
    { needs: { key: "disk", operator: "In", values: ["hdd", "ssd"] }, want: true },
    { needs: { key: "disk", operator: "In", values: ["hdd"] }, want: false },
    { needs: { key: "none", operator: "In", values: ["hdd"] }, want: false },
    { needs: { key: "disk", operator: "NotIn", values: ["hdd"] }, want: true },
    { needs: { key: "disk", operator: "NotIn", values: ["hdd", "ssd"] }, want: false },
    { needs: { key: "none", operator: "NotIn", values: ["hdd"] }, want: true },
    { needs: { key: "disk", operator: "Exists" }, want: true },
    { needs: { key: "none", operator: "Exists" }, want: false },
    { needs: { key: "disk", operator: "DoesNotExist" }, want: false },
    { needs: { key: "none", operator: "DoesNotExist" }, want: true },
    { needs: { key: "slots", operator: "Gt", values: ["7"] }, want: true },
    { needs: { key: "slots", operator: "Gt", values: ["8"] }, want: false },
    { needs: { key: "slots", operator: "Lt", values: ["9"] }, want: true },
    { needs: { key: "slots", operator: "Lt", values: ["8"] }, want: false },
    { needs: { key: "none", operator: "Gt", values: ["1"] }, want: false },
    { needs: { key: "slots", operator: "Gt", values: ["7.5"] }, want: false },
    { needs: { key: "slots", operator: "Lt", values: [] }, want: false },
    { needs: { key: "disk", operator: "Like", values: ["s"] }, want: false },
  ];
  for (const { needs, want } of requirements) {
    test(`${needs.key} ${needs.operator} ${needs.values ?? ""}: ${want}`, () =>
      assert.equal(matchesNodeSelector({ nodeSelectorTerms: [{ matchExpressions: [needs] }] }, node), want));
  }

  const ssd: NodeSelectorRequirement = { key: "disk", operator: "In", values: ["ssd"] };
  const hdd: NodeSelectorRequirement = { key: "disk", operator: "In", values: ["hdd"] };
  const name = (value: string): NodeSelectorRequirement => ({ key: "metadata.name", operator: "In", values: [value] });
  const selectors = [
    { name: "no terms are no node", selector: { nodeSelectorTerms: [] }, want: false },
    { name: "a term without requirements is no node", selector: { nodeSelectorTerms: [{}] }, want: false },
    {
      name: "one of the terms is enough",
      selector: { nodeSelectorTerms: [{ matchExpressions: [hdd] }, { matchExpressions: [ssd] }] },
      want: true,
    },
    {
      name: "all requirements of a term must hold",
      selector: { nodeSelectorTerms: [{ matchExpressions: [ssd, hdd] }] },
      want: false,
    },
    {
      name: "a label of a name that every object inherits is no label",
      selector: { nodeSelectorTerms: [{ matchExpressions: [{ key: "constructor", operator: "Exists" }] }] },
      want: false,
    },
    { name: "the node's name", selector: { nodeSelectorTerms: [{ matchFields: [name("here")] }] }, want: true },
    { name: "another's name", selector: { nodeSelectorTerms: [{ matchFields: [name("there")] }] }, want: false },
  ];
  for (const { name, selector, want } of selectors) {
    test(name, () => assert.equal(matchesNodeSelector(selector, node), want));
  }
});
