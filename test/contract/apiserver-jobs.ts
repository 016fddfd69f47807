import type { Step } from "./apiserver-step.ts";

const JOBS = "/apis/batch/v1/namespaces/suite/jobs";
const CRON_JOBS = "/apis/batch/v1/namespaces/suite/cronjobs";

const pod = { restartPolicy: "Never", containers: [{ name: "a", image: "b" }] };
const job = (spec: object, name = "x"): object => ({
  metadata: { name },
  spec: { template: { metadata: { labels: { l: "1" } }, spec: pod }, ...spec },
});
const rules = (...all: object[]): object => job({ podFailurePolicy: { rules: all } });
const success = (...all: object[]): object =>
  job({ completionMode: "Indexed", completions: 5, successPolicy: { rules: all } });
const codes = (more: object): object => rules({ action: "FailJob", onExitCodes: { operator: "In", ...more } });

const wrongJobs: Readonly<Record<string, object>> = {
  "negative numbers": job({ parallelism: -1, completions: -1, backoffLimit: -1, activeDeadlineSeconds: -1 }),
  "negative numbers of indexes": job({ backoffLimitPerIndex: -1, maxFailedIndexes: -1, ttlSecondsAfterFinished: -1 }),
  "indexes without an indexed mode": job({ backoffLimitPerIndex: 1, maxFailedIndexes: 1 }),
  "failed indexes without their limit": job({ completionMode: "Indexed", completions: 2, maxFailedIndexes: 1 }),
  "an unknown mode": job({ completionMode: "Other" }),
  "an indexed mode without completions": job({ completionMode: "Indexed", parallelism: 1 }),
  "too much at a time": job({ completionMode: "Indexed", completions: 5, parallelism: 100_001 }),
  "more failed indexes than completions": job({
    completionMode: "Indexed",
    completions: 5,
    backoffLimitPerIndex: 1,
    maxFailedIndexes: 6,
  }),
  "too many completions with limits": job({
    completionMode: "Indexed",
    completions: 200_000,
    parallelism: 20_000,
    backoffLimitPerIndex: 1,
    maxFailedIndexes: 20_000,
  }),
  "many completions without a limit": job({ completionMode: "Indexed", completions: 200_000, backoffLimitPerIndex: 1 }),
  "a manager without a domain": job({ managedBy: "me" }),
  "an empty manager": job({ managedBy: "" }),
  "a manager of a wrong domain": job({ managedBy: `A_b/${"c".repeat(70)} d` }),
  "a wrong replacement": job({ podReplacementPolicy: "Sometimes" }),
  "a replacement beside a failure policy": job({
    podReplacementPolicy: "TerminatingOrFailed",
    podFailurePolicy: { rules: [{ action: "Ignore", onPodConditions: [{ type: "a" }] }] },
  }),
  "a failure policy that restarts": job({
    template: { spec: { ...pod, restartPolicy: "OnFailure" } },
    podFailurePolicy: { rules: [{ action: "Ignore", onPodConditions: [{ type: "a" }] }] },
  }),
  "a rule without anything": rules({}),
  "a rule of an unknown action": rules({ action: "Dance", onPodConditions: [{ type: "b", status: "Maybe" }] }),
  "a rule for an index without its limit": rules({ action: "FailIndex", onPodConditions: [{ type: "a" }] }),
  "a rule of both kinds": rules({
    action: "Ignore",
    onExitCodes: { operator: "In", values: [1] },
    onPodConditions: [{ type: "a b" }],
  }),
  "too many rules": rules(
    ...Array.from({ length: 21 }, () => ({ action: "Ignore", onPodConditions: [{ type: "a" }] })),
  ),
  "exit codes of nobody": codes({ containerName: "z", values: [1] }),
  "no exit codes": codes({ values: [] }),
  "exit codes in disorder, twice and zero": codes({ values: [3, 0, 3, 2] }),
  "an unknown operator of exit codes": codes({ operator: "Out", values: [1] }),
  "no operator of exit codes": codes({ operator: "", values: [1] }),
  "a success policy without rules": success(),
  "a success rule without anything": success({}),
  "a success rule of too many": success({ succeededCount: 6 }, { succeededCount: -1 }),
  "more successes than indexes": success({ succeededCount: 3, succeededIndexes: "0-1" }),
  "indexes that are none": success(
    { succeededIndexes: "a" },
    { succeededIndexes: "1-2-3" },
    { succeededIndexes: "1," },
  ),
  "indexes in disorder": success({ succeededIndexes: "3,1" }, { succeededIndexes: "3-2" }, { succeededIndexes: "1-7" }),
  "indexes twice": success({ succeededIndexes: "0,0" }, { succeededIndexes: "-1" }),
  "a name too long for its pods": job({ completionMode: "Indexed", completions: 10 }, "n".repeat(62)),
  "a selector of nobody": job({ manualSelector: true, selector: { matchLabels: { "a b": "c" } } }),
  "a selector by hand that is missing": job({ manualSelector: true }),
};

const cron = (spec: object, template: object = {}): object => ({
  metadata: { name: "x" },
  spec: { schedule: "* * * * *", jobTemplate: { spec: { template: { spec: pod }, ...template } }, ...spec },
});
const wrongCronJobs: Readonly<Record<string, object>> = {
  "an empty schedule": cron({ schedule: "" }),
  "a zone in the schedule": cron({ schedule: "TZ=UTC * * * * *" }),
  "an empty zone": cron({ timeZone: "" }),
  "a zone of the machine": cron({ timeZone: "Local" }),
  "an unknown zone": cron({ timeZone: "Mars/Olympus" }),
  "a zone that climbs": cron({ timeZone: "../etc/passwd" }),
  "an unknown policy": cron({ concurrencyPolicy: "Queue" }),
  "negative numbers": cron({ startingDeadlineSeconds: -1, successfulJobsHistoryLimit: -1, failedJobsHistoryLimit: -1 }),
  "a selector": cron({}, { selector: { matchLabels: { a: "b" } }, manualSelector: true }),
  "wrong jobs": cron({}, { completionMode: "Other", backoffLimit: -1, podReplacementPolicy: "x" }),
};

const RESTING = job({ suspend: true, parallelism: 2, completions: 2 }, "resting");
const MERGE = "application/merge-patch+json";
const change = (name: string, spec: object, at = "resting"): Step => ({
  name: `job: ${name}`,
  method: "PATCH",
  path: `${JOBS}/${at}`,
  contentType: MERGE,
  body: { spec },
});

/** Jobs and cron jobs that are refused, with all that is wrong with them, and changes of jobs. */
export const JOB_STEPS: readonly Step[] = [
  ...Object.entries(wrongJobs).map(
    ([name, body]): Step => ({ name: `refuses a job: ${name}`, method: "POST", path: JOBS, body }),
  ),
  ...Object.entries(wrongCronJobs).map(
    ([name, body]): Step => ({ name: `refuses a cron job: ${name}`, method: "POST", path: CRON_JOBS, body }),
  ),
  {
    name: "a job with policies has their defaults",
    method: "POST",
    path: JOBS,
    body: job(
      {
        completionMode: "Indexed",
        completions: 3,
        backoffLimitPerIndex: 1,
        managedBy: "example.com/other",
        podFailurePolicy: { rules: [{ action: "FailIndex", onPodConditions: [{ type: "DisruptionTarget" }] }] },
        successPolicy: { rules: [{ succeededIndexes: "0-1", succeededCount: 1 }] },
      },
      "policies",
    ),
  },
  {
    name: "a job without labels has those of its pods",
    method: "POST",
    path: JOBS,
    body: { metadata: { name: "bare" }, spec: { suspend: true, template: { spec: pod } } },
  },
  { name: "a suspended job", method: "POST", path: JOBS, body: RESTING },
  change("a suspended one is placed anew", {
    template: { metadata: { annotations: { a: "b" } }, spec: { nodeSelector: { a: "b" } } },
  }),
  change("a suspended one gets other resources", {
    template: {
      spec: {
        containers: [{ name: "a", image: "b", resources: { requests: { cpu: "1" } }, imagePullPolicy: "Always" }],
      },
    },
  }),
  change("completions of an indexed one alone", { completions: 5 }, "policies"),
  change("completions with the parallelism", { completions: 5, parallelism: 5 }, "policies"),
  { name: "job: gone", method: "DELETE", path: `${JOBS}/resting?propagationPolicy=Background` },
  { name: "job: policies gone", method: "DELETE", path: `${JOBS}/policies?propagationPolicy=Background` },
];
