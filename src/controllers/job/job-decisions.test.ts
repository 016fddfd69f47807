import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job, Pod } from "../../model/generated/types.ts";
import { assessJob, deadlineMs, nextRecord, retryDelayMs } from "./assess-job.ts";
import { judgeFailure } from "./failure-policy.ts";
import { formatIndexes, parseIndexes } from "./index-set.ts";
import { indexedPrefix } from "./job-pods.ts";
import { planJob } from "./plan-job.ts";
import { matchedSuccessRule } from "./success-policy.ts";

const lists = [
  { text: "", indexes: [] },
  { text: "0", indexes: [0] },
  { text: "0,1", indexes: [0, 1] },
  { text: "1,3-5,7", indexes: [1, 3, 4, 5, 7] },
] as const;
for (const { text, indexes } of lists) {
  test(`indexes ${JSON.stringify(text)} are read and written`, () => {
    assert.deepEqual([...parseIndexes(text, 10)], indexes);
    assert.equal(formatIndexes(new Set(indexes)), text);
  });
}
test("indexes beyond the completions and garbage are left out", () => {
  assert.deepEqual([...parseIndexes("1,x,2-,8-12,20", 10)], [1, 8, 9]);
});

const ended = (at: string): Pod => ({
  metadata: { creationTimestamp: at },
  spec: { containers: [] },
  status: {},
});
const [t0, t1, t2] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"];
const records = [
  {
    name: "nothing new leaves the record",
    known: { failures: 2, lastMs: 5 },
    succeeded: [],
    failed: [],
    want: { failures: 2, lastMs: 5 },
  },
  {
    name: "failures are added",
    known: { failures: 1, lastMs: 5 },
    succeeded: [],
    failed: [t0, t1],
    want: { failures: 3, lastMs: Date.parse(t1) },
  },
  { name: "a success starts anew", known: { failures: 4, lastMs: 5 }, succeeded: [t1], failed: [], want: undefined },
  {
    name: "only failures after it count",
    known: undefined,
    succeeded: [t1],
    failed: [t0, t2],
    want: { failures: 1, lastMs: Date.parse(t2) },
  },
] as const;
for (const { name, known, succeeded, failed, want } of records) {
  test(name, () => assert.deepEqual(nextRecord(known, succeeded.map(ended), failed.map(ended)), want));
}
test("the delay doubles up to ten minutes", () => {
  const delays = [0, 1, 2, 3, 7, 50].map((failures) => retryDelayMs({ failures, lastMs: 0 }, 0) / 1000);
  assert.deepEqual(delays, [0, 10, 20, 40, 600, 600]);
  assert.equal(retryDelayMs({ failures: 1, lastMs: 0 }, 4000), 6000);
});

const failed = (exitCode: number, condition?: string): Pod => ({
  metadata: { namespace: "n", name: "p" },
  spec: { containers: [] },
  status: {
    containerStatuses: [
      { name: "c", image: "", imageID: "", ready: false, restartCount: 0, state: { terminated: { exitCode } } },
    ],
    ...(condition && { conditions: [{ type: condition, status: "True" }] }),
  },
});
const rules = [
  { action: "Count", onExitCodes: { operator: "In", values: [1] } },
  { action: "FailIndex", onExitCodes: { containerName: "c", operator: "In", values: [2] } },
  { action: "FailJob", onExitCodes: { containerName: "other", operator: "NotIn", values: [9] } },
  { action: "FailJob", onPodConditions: [{ type: "Bad" }] },
  { action: "Ignore", onExitCodes: { operator: "NotIn", values: [5] } },
];
const verdicts = [
  { name: "the first rule decides", pod: failed(1), want: { action: "Count", counts: true } },
  { name: "a rule for one container", pod: failed(2), want: { action: "FailIndex", counts: true } },
  { name: "another container's rule is passed over", pod: failed(3), want: { action: "Ignore", counts: false } },
  {
    name: "a condition",
    pod: failed(5, "Bad"),
    want: { action: "FailJob", counts: true, message: "Pod n/p has condition Bad matching FailJob rule at index 3" },
  },
  { name: "no rule", pod: failed(5), want: { counts: true } },
  { name: "exit code 0 matches nothing", pod: failed(0), want: { counts: true } },
];
for (const { name, pod, want } of verdicts) {
  test(`failure policy: ${name}`, () => assert.deepEqual(judgeFailure({ rules }, pod), want));
}

const successes = [
  { name: "all indexes of a rule", rules: [{ succeededIndexes: "0-1" }], done: [0, 1], want: 0 },
  { name: "some of them are too few", rules: [{ succeededIndexes: "0-1" }], done: [0], want: undefined },
  { name: "unless as many suffice", rules: [{ succeededIndexes: "0-3", succeededCount: 2 }], done: [0, 3], want: 0 },
  { name: "any so many", rules: [{ succeededIndexes: "4" }, { succeededCount: 1 }], done: [2], want: 1 },
];
for (const { name, rules: given, done, want } of successes) {
  test(`success policy: ${name}`, () => assert.equal(matchedSuccessRule({ rules: given }, new Set(done), 5), want));
}

for (const { policy, want } of [
  { policy: "TerminatingOrFailed", want: 1 },
  { policy: "Failed", want: 0 },
]) {
  test(`with the replacement policy ${policy}, a pod that is being deleted has ${want} successor`, () => {
    const job: Job = {
      metadata: {},
      spec: { completions: 1, parallelism: 1, podReplacementPolicy: policy, template: {} },
    };
    const pod: Pod = { metadata: { name: "p" }, spec: { containers: [] }, status: { phase: "Running" } };
    const assessment = assessJob({ job, pods: [pod], isDeleting: () => true, nowMs: 0 });
    assert.equal(planJob({ job, assessment, record: undefined, nowMs: 0 }).creations.length, want);
  });
}

test("a short list that names billions of indexes is cut, not built", () => {
  const text = Array.from({ length: 50 }, () => "0-2147483646").join(",");
  assert.equal(parseIndexes(text, 2 ** 31 - 1).size, 200_000);
});

const ofIndex = (name: string, index: number | undefined, state: "running" | "pending" = "running"): Pod => ({
  metadata: {
    name,
    uid: name,
    ...(index !== undefined && { annotations: { "batch.kubernetes.io/job-completion-index": String(index) } }),
  },
  spec: { containers: [], nodeName: "n" },
  status: { phase: state === "running" ? "Running" : "Pending" },
});
const indexed = (completions: number, parallelism: number): Job => ({
  metadata: { name: "j" },
  spec: { completionMode: "Indexed", completions, parallelism, template: {} },
});
for (const { name, job, pods, want } of [
  {
    name: "of two pods of an index the one that is further stays",
    job: indexed(2, 3),
    pods: [ofIndex("early", 0, "pending"), ofIndex("late", 0), ofIndex("other", 1)],
    want: ["early"],
  },
  {
    name: "a second pod of an index goes before the only one of another",
    job: indexed(2, 3),
    pods: [ofIndex("a", 0), ofIndex("b", 0), ofIndex("c", 1, "pending")],
    want: ["a"],
  },
  {
    name: "a pod of an index that the job does not have any more goes",
    job: indexed(2, 2),
    pods: [ofIndex("a", 0), ofIndex("b", 1), ofIndex("c", 2)],
    want: ["c"],
  },
  {
    name: "a pod without an index goes",
    job: indexed(2, 2),
    pods: [ofIndex("a", 0), ofIndex("b", undefined), ofIndex("c", 1)],
    want: ["b"],
  },
  {
    name: "as many go as are too many, those that are not running first",
    job: indexed(3, 2),
    pods: [ofIndex("a", 0), ofIndex("b", 1, "pending"), ofIndex("c", 2)],
    want: ["b"],
  },
]) {
  test(`surplus: ${name}`, () => {
    const assessment = assessJob({ job, pods, isDeleting: () => false, nowMs: 0 });
    const { deletions } = planJob({ job, assessment, record: undefined, nowMs: 0 });
    assert.deepEqual(
      deletions.map(({ metadata }) => metadata.name),
      want,
    );
  });
}

for (const { backoffLimit, restartCount, want } of [
  { backoffLimit: 0, restartCount: 0, want: undefined },
  { backoffLimit: 0, restartCount: 1, want: "BackoffLimitExceeded" },
  { backoffLimit: 2, restartCount: 1, want: undefined },
  { backoffLimit: 2, restartCount: 2, want: "BackoffLimitExceeded" },
]) {
  test(`a pod with ${restartCount} restarts in place and a limit of ${backoffLimit}: ${want}`, () => {
    const template = { spec: { containers: [], restartPolicy: "OnFailure" } };
    const job: Job = { metadata: {}, spec: { completions: 1, backoffLimit, template } };
    const containerStatuses = [{ name: "c", image: "", imageID: "", ready: true, restartCount }];
    const pod: Pod = { metadata: {}, spec: { containers: [] }, status: { phase: "Running", containerStatuses } };
    const { verdict } = assessJob({ job, pods: [pod], isDeleting: () => false, nowMs: 0 });
    assert.equal(verdict?.reason, want);
  });
}

test("a pod of an index that the job does not have does not count as succeeded", () => {
  const succeeded = (index: number): Pod => {
    const { metadata, ...rest } = ofIndex(`p${index}`, index);
    const finalizers = ["batch.kubernetes.io/job-tracking"];
    return { ...rest, metadata: { ...metadata, finalizers }, status: { phase: "Succeeded" } };
  };
  const pods = [succeeded(1), succeeded(2)];
  const { succeededIndexes } = assessJob({ job: indexed(2, 2), pods, isDeleting: () => false, nowMs: 0 });
  assert.deepEqual([...succeededIndexes], [1]);
});

test("pods that are noted as ended in the status count once", () => {
  const metadata = (uid: string) => ({ name: uid, uid, finalizers: ["batch.kubernetes.io/job-tracking"] });
  const pods = ["Succeeded", "Failed"].map((phase) => ({
    metadata: metadata(phase),
    spec: { containers: [] },
    status: { phase },
  }));
  const uncountedTerminatedPods = { succeeded: ["Succeeded"], failed: ["Failed"] };
  const job: Job = { metadata: {}, spec: { completions: 3, template: {} }, status: { uncountedTerminatedPods } };
  const { succeeded, failed: count } = assessJob({ job, pods, isDeleting: () => false, nowMs: 0 });
  assert.deepEqual([succeeded, count], [1, 1]);
});

for (const { suspend, want } of [
  { suspend: false, want: 10_000 },
  { suspend: true, want: undefined },
]) {
  test(`a job has ${want ?? "any number of"} milliseconds left if it is${suspend ? "" : " not"} suspended`, () => {
    const spec = { suspend, activeDeadlineSeconds: 30, template: {} };
    const job: Job = { metadata: {}, spec, status: { startTime: t0 } };
    assert.equal(deadlineMs({ job, nowMs: Date.parse(t0) + 20_000 }), want);
  });
}

for (const { failedIndexes, completedIndexes, want } of [
  { failedIndexes: "0", completedIndexes: "1", want: undefined },
  { failedIndexes: "0,2", completedIndexes: "1", want: "MaxFailedIndexesExceeded" },
  { failedIndexes: "0", completedIndexes: "1-3", want: "FailedIndexes" },
]) {
  test(`of four indexes of which one may fail, ${failedIndexes} failed and ${completedIndexes} done: ${want}`, () => {
    const { metadata, spec } = indexed(4, 4);
    const job: Job = {
      metadata,
      spec: { ...spec, backoffLimitPerIndex: 0, maxFailedIndexes: 1 },
      status: { failedIndexes, completedIndexes },
    };
    assert.equal(assessJob({ job, pods: [], isDeleting: () => false, nowMs: 0 }).verdict?.reason, want);
  });
}

test("the name of an indexed pod is cut before its index, never within", () => {
  const prefix = indexedPrefix({ metadata: { name: "j".repeat(63) }, spec: { template: {} } }, 1234);
  assert.match(prefix, /^j+-1234-$/);
  assert.equal(`${prefix}abcde`.length, 63);
});
