import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADMISSION_NODE } from "../../../test/support/admission-node.ts";
import { pod } from "../../../test/support/pods.ts";
import type { Pod } from "../../model/generated/types.ts";
import { type AdmissionVerdict, admissionVerdict, type NodeLoad } from "./verdict.ts";

const node = { ...ADMISSION_NODE, allocatable: { cpu: "4", pods: "110" } };
const SHORT = "Node didn't have enough resource: cpu, requested: 2000, used: 4000, capacity: 4000";

function needs(name: string, cpu: string, priority = 0): Pod {
  return pod(name)
    .container("app", { resources: { requests: { cpu } } })
    .with({ priority })
    .build();
}

const [small, large] = [needs("small", "1"), needs("large", "3")];
const EMPTY: NodeLoad = { active: [], stopping: [], unread: [] };
const rejected = { kind: "rejected", rejection: { reason: "OutOfcpu", message: SHORT }, isShortage: true };

const cases: readonly { name: string; load: Partial<NodeLoad>; want: unknown }[] = [
  { name: "is admitted if there is room beside all", load: { active: [small], stopping: [small] }, want: undefined },
  { name: "is rejected if those that run leave no room", load: { active: [small, large] }, want: rejected },
  {
    name: "is rejected if it makes no difference that others end",
    load: { active: [large], stopping: [small] },
    want: rejected,
  },
  {
    name: "waits for those that stop",
    load: { active: [small], stopping: [large] },
    want: { kind: "waits", why: `for others to end: ${SHORT}` },
  },
  {
    name: "waits for those that are not decided",
    load: { active: [small], undecided: [large] },
    want: { kind: "waits", why: `for others to be admitted or to end: ${SHORT}` },
  },
  {
    name: "waits until earlier pods are read, which may have completed",
    load: { active: [small], unread: [large] },
    want: { kind: "waits", why: `for the state of earlier pods: ${SHORT}` },
  },
];

function checked(verdict: AdmissionVerdict): unknown {
  if (verdict.kind !== "waits") return verdict.kind === "admitted" ? undefined : verdict;
  const { victims, shortOf, ...rest } = verdict;
  const names = victims?.map(({ metadata }) => metadata.name) ?? [];
  return { ...rest, ...(names.length > 0 && { names, shortOf }) };
}

describe("a pod that asks for admission", () => {
  for (const { name, load, want } of cases) {
    test(name, () => assert.deepEqual(checked(admissionVerdict(needs("web", "2"), { ...EMPTY, ...load }, node)), want));
  }
});

describe("a critical pod that asks for admission", () => {
  const critical = needs("web", "2", 2_000_000_000);
  const critics = [needs("a", "2", 2_000_000_000), needs("b", "2", 2_000_000_000)];
  const preempts = (why: string) => ({ kind: "waits", why, names: ["large"], shortOf: "OutOfcpu" });
  const more: typeof cases = [
    {
      name: "preempts others",
      load: { active: [small, large] },
      want: preempts(`for others to end: ${SHORT}`),
    },
    {
      name: "preempts nobody while others stop that leave it room",
      load: { active: [small], stopping: [large] },
      want: { kind: "waits", why: `for others to end: ${SHORT}` },
    },
    {
      name: "preempts nobody before earlier pods are read",
      load: { active: [large], unread: [small] },
      want: { kind: "waits", why: `for the state of earlier pods: ${SHORT}` },
    },
  ];
  for (const { name, load, want } of more) {
    test(name, () => assert.deepEqual(checked(admissionVerdict(critical, { ...EMPTY, ...load }, node)), want));
  }

  test("is rejected if nobody can be preempted", () => {
    const verdict = admissionVerdict(critical, { ...EMPTY, active: critics }, node);
    assert.equal(verdict.kind === "rejected" && verdict.rejection.reason, "UnexpectedAdmissionError");
  });
});
