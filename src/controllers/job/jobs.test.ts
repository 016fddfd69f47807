import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { podsOf, runPods, setPodStatus } from "../../../test/support/bench-pods.ts";
import { ControllerBench } from "../../../test/support/controllers.ts";
import { EVENTS, JOBS, PODS } from "../../adapters/kubeapi/index.ts";
import type { JobSpec, Pod } from "../../model/generated/types.ts";
import { garbageCollectorController } from "../garbage/garbage-collector.ts";
import { schedulerController } from "../scheduler/scheduler.ts";
import { jobController } from "./jobs.ts";

async function bench(t: TestContext, spec: Partial<JobSpec> = {}, restartPolicy = "Never") {
  const made = await ControllerBench.start(jobController, garbageCollectorController, schedulerController);
  t.after(() => made.close());
  await made.addNode();
  const { api, signal } = made;
  const template = { spec: { containers: [{ name: "c", image: "x" }], restartPolicy } };
  const object = { metadata: { name: "j" }, spec: { template, ...spec } };
  await api.create(JOBS, { namespace: "default", object }, signal);
  await made.settle();
  const get = () => api.get(JOBS, { namespace: "default", name: "j" }, signal);
  const patch = async (body: object) => {
    await api.patch(JOBS, { namespace: "default", name: "j", type: "merge", body }, signal);
    await made.settle();
  };
  const conditions = async () =>
    ((await get()).status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`);
  const living = async () =>
    (await podsOf(made)).filter(
      ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined && status?.phase !== "Succeeded" && status?.phase !== "Failed",
    );
  const end = async (pod: Pod | undefined, exitCode = 0) => {
    assert.ok(pod);
    const at = new Date(made.clock.now().wall).toISOString();
    const finishedAt = `${at.slice(0, 19)}Z`;
    const state = { terminated: { exitCode, finishedAt } };
    const containerStatuses = [{ name: "c", image: "x", imageID: "", ready: false, restartCount: 0, state }];
    await setPodStatus(made, pod, { phase: exitCode === 0 ? "Succeeded" : "Failed", containerStatuses });
  };
  const reasons = async () =>
    (await api.list(EVENTS, { namespace: "default" }, signal)).items.map(({ reason }) => reason);
  return { made, get, patch, conditions, living, end, reasons };
}

const succeeded = ["SuccessCriteriaMet=True CompletionsReached", "Complete=True CompletionsReached"];

test("a job ends when its pod has succeeded, and the pod is released", async (t) => {
  const { made, get, living, end, conditions, reasons } = await bench(t);
  const [pod] = await living();
  assert.match(pod?.metadata.name ?? "", /^j-[a-z0-9]{5}$/);
  assert.deepEqual(pod?.metadata.finalizers, ["batch.kubernetes.io/job-tracking"]);
  assert.equal((await get()).status?.active, 1);
  await end(pod);
  const { status } = await get();
  assert.deepEqual([status?.succeeded, status?.active ?? 0, status?.completionTime !== undefined], [1, 0, true]);
  assert.deepEqual({ ...status?.uncountedTerminatedPods }, {});
  assert.deepEqual(await conditions(), succeeded);
  assert.deepEqual((await podsOf(made))[0]?.metadata.finalizers, undefined);
  assert.ok((await reasons()).includes("Completed"));
});

test("so many pods succeed, so many at a time", async (t) => {
  const { living, end, get, conditions } = await bench(t, { completions: 3, parallelism: 2 });
  assert.equal((await living()).length, 2);
  await end((await living())[0]);
  assert.equal((await living()).length, 2);
  await end((await living())[0]);
  assert.equal((await living()).length, 1);
  await end((await living())[0]);
  assert.equal((await get()).status?.succeeded, 3);
  assert.deepEqual(await conditions(), succeeded);
});

test("failed pods are replaced after 10, 20, 40 seconds, up to the limit", async (t) => {
  const { made, living, end, conditions, get, reasons } = await bench(t, { backoffLimit: 2 });
  for (const seconds of [10, 20]) {
    await end((await living())[0], 1);
    assert.equal((await living()).length, 0);
    await made.advance((seconds - 1) * 1000);
    assert.equal((await living()).length, 0);
    await made.advance(1000);
    assert.equal((await living()).length, 1);
  }
  await end((await living())[0], 1);
  assert.equal((await get()).status?.failed, 3);
  assert.deepEqual(await conditions(), ["FailureTarget=True BackoffLimitExceeded", "Failed=True BackoffLimitExceeded"]);
  assert.ok((await reasons()).includes("BackoffLimitExceeded"));
});

test("restarts in place count against the limit, too", async (t) => {
  const { made, living, conditions } = await bench(t, { backoffLimit: 3 }, "OnFailure");
  const [pod] = await living();
  assert.ok(pod);
  const containerStatuses = [{ name: "c", image: "x", imageID: "", ready: true, restartCount: 3 }];
  await setPodStatus(made, pod, { phase: "Running", containerStatuses });
  await runPods(made);
  assert.deepEqual(await conditions(), ["FailureTarget=True BackoffLimitExceeded", "Failed=True BackoffLimitExceeded"]);
});

test("a job that runs too long fails, after its pods have ended", async (t) => {
  const { made, living, conditions } = await bench(t, { activeDeadlineSeconds: 30 });
  await runPods(made);
  await made.advance(30_000);
  assert.equal((await living()).length, 0);
  assert.deepEqual(await conditions(), ["FailureTarget=True DeadlineExceeded"]);
  await runPods(made);
  assert.deepEqual(await conditions(), ["FailureTarget=True DeadlineExceeded", "Failed=True DeadlineExceeded"]);
});

test("a suspended job has no pods, and starts anew", async (t) => {
  const { made, living, conditions, patch, get, reasons } = await bench(t, { suspend: true });
  assert.equal((await living()).length, 0);
  assert.deepEqual(await conditions(), ["Suspended=True JobSuspended"]);
  assert.equal((await get()).status?.startTime, undefined);
  await patch({ spec: { suspend: false } });
  assert.equal((await living()).length, 1);
  assert.deepEqual(await conditions(), ["Suspended=False JobResumed"]);
  await patch({ spec: { suspend: true } });
  await runPods(made);
  assert.equal((await podsOf(made)).length, 0);
  assert.equal((await get()).status?.failed ?? 0, 0);
  const told = (await reasons()).filter((reason) => reason === "Suspended" || reason === "Resumed").sort();
  assert.deepEqual(told, ["Resumed", "Suspended"]);
});

test("each index of an Indexed job runs once, with its number in the environment", async (t) => {
  const { made, living, end, get, conditions } = await bench(t, {
    completionMode: "Indexed",
    completions: 3,
    parallelism: 3,
  });
  const pods = await living();
  assert.deepEqual(pods.map(({ spec }) => spec.hostname).sort(), ["j-0", "j-1", "j-2"]);
  const [first] = pods;
  assert.match(first?.metadata.name ?? "", /^j-0-[a-z0-9]{5}$/);
  assert.equal(first?.metadata.labels?.["batch.kubernetes.io/job-completion-index"], "0");
  assert.equal(first?.spec.containers[0]?.env?.[0]?.name, "JOB_COMPLETION_INDEX");
  await end(pods.find(({ spec }) => spec.hostname === "j-2"));
  await end(pods.find(({ spec }) => spec.hostname === "j-0"));
  assert.equal((await get()).status?.completedIndexes, "0,2");
  await end(
    pods.find(({ spec }) => spec.hostname === "j-1"),
    1,
  );
  await made.advance(10_000);
  await end((await living())[0]);
  assert.deepEqual([(await get()).status?.completedIndexes, (await get()).status?.failed], ["0-2", 1]);
  assert.deepEqual(await conditions(), succeeded);
});

test("with a limit for each index, one that fails too often fails the job when the others are done", async (t) => {
  const { made, living, end, get, conditions } = await bench(t, {
    completionMode: "Indexed",
    completions: 2,
    parallelism: 2,
    backoffLimitPerIndex: 1,
  });
  const of = async (index: number) => (await living()).find(({ spec }) => spec.hostname === `j-${index}`);
  await end(await of(0), 1);
  await made.advance(10_000);
  assert.equal((await of(0))?.metadata.annotations?.["batch.kubernetes.io/job-index-failure-count"], "1");
  await end(await of(0), 1);
  assert.equal((await get()).status?.failedIndexes, "0");
  assert.equal(await of(0), undefined);
  await end(await of(1));
  assert.deepEqual(await conditions(), ["FailureTarget=True FailedIndexes", "Failed=True FailedIndexes"]);
  assert.deepEqual([(await get()).status?.completedIndexes, (await get()).status?.failed], ["1", 2]);
});

test("a failure policy ignores some failures and ends the job at others", async (t) => {
  const rules = [
    { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
    { action: "FailJob", onExitCodes: { operator: "In", values: [42] } },
  ];
  const { made, living, end, get, conditions } = await bench(t, { podFailurePolicy: { rules } });
  const [first] = await living();
  assert.ok(first);
  const disrupted = [{ type: "DisruptionTarget", status: "True" }];
  await setPodStatus(made, first, { phase: "Failed", conditions: disrupted });
  await made.advance(10_000);
  assert.equal((await get()).status?.failed ?? 0, 0);
  const [second] = await living();
  await end(second, 42);
  assert.deepEqual(await conditions(), ["FailureTarget=True PodFailurePolicy", "Failed=True PodFailurePolicy"]);
  const message = (await get()).status?.conditions?.[0]?.message;
  const { name } = second?.metadata ?? {};
  assert.equal(
    message,
    `Container c for pod default/${name} failed with exit code 42 matching FailJob rule at index 1`,
  );
});

test("a success policy ends a job early, and its other pods are no failures", async (t) => {
  const { made, living, end, get, conditions } = await bench(t, {
    completionMode: "Indexed",
    completions: 3,
    parallelism: 3,
    successPolicy: { rules: [{ succeededIndexes: "1" }] },
  });
  await end((await living()).find(({ spec }) => spec.hostname === "j-1"));
  await runPods(made);
  assert.deepEqual(await conditions(), ["SuccessCriteriaMet=True SuccessPolicy", "Complete=True SuccessPolicy"]);
  assert.deepEqual([(await get()).status?.succeeded, (await get()).status?.failed ?? 0], [1, 0]);
});

test("a pod that is deleted counts as failed, and is replaced", async (t) => {
  const { made, living, get } = await bench(t);
  const [pod] = await living();
  await made.api.delete(PODS, { namespace: "default", name: pod?.metadata.name ?? "" }, made.signal);
  await runPods(made);
  assert.equal((await get()).status?.failed, 1);
  await made.advance(10_000);
  assert.equal((await living()).length, 1);
});

test("a job is deleted with its pods some time after its end", async (t) => {
  const { made, living, end } = await bench(t, { ttlSecondsAfterFinished: 60 });
  await end((await living())[0]);
  await made.advance(59_000);
  assert.equal((await made.api.list(JOBS, {}, made.signal)).items.length, 1);
  await made.advance(1000);
  await runPods(made);
  assert.equal((await made.api.list(JOBS, {}, made.signal)).items.length, 0);
  assert.equal((await podsOf(made)).length, 0);
});

test("pods of a job that was deleted are released and go", async (t) => {
  const { made } = await bench(t);
  await made.api.delete(JOBS, { namespace: "default", name: "j", propagation: "Background" }, made.signal);
  await runPods(made);
  assert.equal((await podsOf(made)).length, 0);
});

test("fewer at a time deletes pods without counting them", async (t) => {
  const { made, patch, living, get } = await bench(t, { parallelism: 3, completions: 5 });
  await runPods(made);
  await patch({ spec: { parallelism: 1 } });
  await runPods(made);
  assert.equal((await living()).length, 1);
  assert.equal((await get()).status?.failed ?? 0, 0);
});

test("nothing is written while nothing changes", async (t) => {
  const { made } = await bench(t);
  await runPods(made);
  assert.equal(await made.writesWithin(3_600_000), 0);
});

test("the end of a pod that was adopted is counted, and its work is not done again", async (t) => {
  const { made, end } = await bench(t, { suspend: true });
  const { api, signal } = made;
  const labels = { app: "k" };
  const spec = { containers: [{ name: "c", image: "x" }], restartPolicy: "Never" };
  await api.create(PODS, { namespace: "default", object: { metadata: { name: "first", labels }, spec } }, signal);
  const template = { metadata: { labels }, spec };
  const job = { manualSelector: true, selector: { matchLabels: labels }, template };
  await api.create(JOBS, { namespace: "default", object: { metadata: { name: "k" }, spec: job } }, signal);
  await made.settle();
  const [pod] = await podsOf(made);
  assert.deepEqual(pod?.metadata.finalizers, ["batch.kubernetes.io/job-tracking"]);
  await end(pod);
  await made.advance(60_000);
  const { status } = await api.get(JOBS, { namespace: "default", name: "k" }, signal);
  assert.deepEqual([status?.succeeded, status?.completionTime !== undefined], [1, true]);
  assert.deepEqual(
    (await podsOf(made)).map(({ metadata }) => metadata.name),
    ["first"],
  );
});
