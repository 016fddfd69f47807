import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job, JobSpec, PodFailurePolicyRule, SuccessPolicyRule } from "../../../model/generated/types.ts";
import { fieldErrorText } from "../../status/field-error.ts";
import { checkIndexes } from "./job-indexes.ts";
import { jobErrors, jobUpdateErrors } from "./job-validation.ts";

const pod = { restartPolicy: "Never", containers: [{ name: "a", image: "b" }] } as const;
const spec = (more: Partial<JobSpec> = {}): JobSpec => ({ template: { spec: pod }, ...more }) as JobSpec;
const indexed = (more: Partial<JobSpec> = {}): JobSpec => spec({ completionMode: "Indexed", completions: 5, ...more });
const failing = (...rules: Partial<PodFailurePolicyRule>[]): JobSpec =>
  spec({ podFailurePolicy: { rules: rules as PodFailurePolicyRule[] } });
const succeeding = (...rules: SuccessPolicyRule[]): JobSpec => indexed({ successPolicy: { rules } });

const cases: readonly (readonly [name: string, spec: JobSpec, problems: readonly string[]])[] = [
  ["a plain job", spec(), []],
  [
    "an indexed job with all policies",
    { ...indexed({ backoffLimitPerIndex: 1, maxFailedIndexes: 2 }), managedBy: "a.io/b" },
    [],
  ],
  [
    "limits of indexes without indexes",
    spec({ backoffLimitPerIndex: 1 }),
    ["s.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
  ],
  [
    "failed indexes without a limit",
    indexed({ maxFailedIndexes: 9 }),
    [
      "s.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
      "s.maxFailedIndexes: Invalid value: 9: must be less than or equal to completions",
    ],
  ],
  [
    "too much of it",
    indexed({ completions: 200_000, parallelism: 20_000, backoffLimitPerIndex: 1 }),
    [
      "s.maxFailedIndexes: Required value: must be specified when completions is above 100000",
      "s.parallelism: Invalid value: 20000: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index",
    ],
  ],
  [
    "a manager without a domain",
    spec({ managedBy: "me" }),
    ['s.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")'],
  ],
  [
    "a replacement that the failure policy does not allow",
    {
      ...failing({ action: "Ignore", onPodConditions: [{ type: "A", status: "True" }] }),
      podReplacementPolicy: "TerminatingOrFailed",
    },
    ['s.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
  ],
  [
    "an empty rule",
    failing({}),
    [
      's.podFailurePolicy.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
      "s.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
    ],
  ],
  [
    "wrong exit codes",
    failing({ action: "FailJob", onExitCodes: { operator: "In", containerName: "z", values: [3, 0, 3] } }),
    [
      's.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: "z": must be one of the container or initContainer names in the pod template',
      "s.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
      "s.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 3",
      "s.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
    ],
  ],
  [
    "a success policy without indexes",
    spec({ successPolicy: { rules: [] } }),
    ['s.successPolicy: Invalid value: {"rules":[]}: requires indexed completion mode'],
  ],
  [
    "more successes than there are",
    succeeding({ succeededCount: 6 }, { succeededCount: 3, succeededIndexes: "0-1" }),
    [
      "s.successPolicy.rules[0].succeededCount: Invalid value: 6: must be less than or equal to 5 (the number of specified completions)",
      "s.successPolicy.rules[1].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)",
    ],
  ],
];
for (const [name, given, problems] of cases) {
  test(`${name} ${problems.length === 0 ? "is valid" : "is refused"}`, () => {
    assert.deepEqual(jobErrors(given, "s").map(fieldErrorText), problems);
  });
}

const indexes: readonly (readonly [text: string, count: number, problem?: RegExp])[] = [
  ["", 0],
  ["0", 1],
  ["0,2-4", 4],
  ["5", 0, /too large index: "5"/],
  ["0-9999999999999", 0, /too large index/],
  ["3,1", 0, /non-increasing order, previous: 3, current: 1/],
  ["0,0", 0, /non-increasing order/],
  ["2-2", 0, /non-increasing order/],
  ["1-2-3", 0, /at most two parts/],
  ["a", 0, /cannot convert string to integer for index: "a"/],
  ["1,", 0, /cannot convert string to integer for index: ""/],
];
for (const [text, count, problem] of indexes) {
  test(`indexes ${JSON.stringify(text)} below 5`, () => {
    const found = checkIndexes(text, 5);
    assert.equal(found.count, count);
    assert.match(found.problem ?? "", problem ?? /^$/);
  });
}

const change = (given: JobSpec, old: JobSpec, status: Job["status"] = {}): readonly string[] =>
  jobUpdateErrors({ metadata: {}, spec: given }, { metadata: {}, spec: old, status }).map(({ field }) => field);
const placed = (template: object): JobSpec =>
  spec({ suspend: true, template: { spec: { ...pod, ...template } } as JobSpec["template"] });

test("completions of an indexed job change only with its parallelism, of others never", () => {
  assert.deepEqual(change(indexed({ completions: 6, parallelism: 6 }), indexed({ parallelism: 5 })), []);
  assert.deepEqual(change(indexed({ completions: 6, parallelism: 5 }), indexed({ parallelism: 5 })), [
    "spec.completions",
  ]);
  assert.deepEqual(change(spec({ completions: 6 }), spec({ completions: 5 })), ["spec.completions"]);
});

test("a suspended job without pods may be placed anew and get other resources, and nothing else of its template", () => {
  const old = placed({});
  const resources = { requests: { cpu: "1" } };
  assert.deepEqual(change(placed({ nodeSelector: { a: "b" }, tolerations: [{ operator: "Exists" }] }), old), []);
  assert.deepEqual(change(placed({ containers: [{ name: "a", image: "b", resources }] }), old), []);
  assert.deepEqual(change(placed({ containers: [{ name: "a", image: "c" }] }), old), ["spec.template"]);
  assert.deepEqual(change(placed({ nodeSelector: { a: "b" } }), old, { active: 1 }), ["spec.template"]);
  assert.deepEqual(change(placed({ nodeSelector: { a: "b" } }), old, { startTime: "2026-01-01T00:00:00Z" }), [
    "spec.template",
  ]);
});

test("policies, the mode and the manager of a job are for ever", () => {
  const after = { ...indexed({ backoffLimitPerIndex: 1 }), managedBy: "a.io/b" };
  assert.deepEqual(change(after, spec({ completions: 5 })), [
    "spec.completionMode",
    "spec.backoffLimitPerIndex",
    "spec.managedBy",
  ]);
});
