import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { podsOf, setPodStatus } from "../../../test/support/bench-pods.ts";
import { ControllerBench } from "../../../test/support/controllers.ts";
import { CRON_JOBS, EVENTS, JOBS } from "../../adapters/kubeapi/index.ts";
import type { CronJobSpec } from "../../model/generated/types.ts";
import { garbageCollectorController } from "../garbage/garbage-collector.ts";
import { jobController } from "../job/jobs.ts";
import { cronJobController } from "./cron-jobs.ts";

const MINUTE = 60_000;

async function bench(t: TestContext, spec: Partial<CronJobSpec> = {}) {
  const made = await ControllerBench.start(cronJobController, jobController, garbageCollectorController);
  t.after(() => made.close());
  const { api, signal } = made;
  const template = { spec: { containers: [{ name: "c", image: "x" }], restartPolicy: "Never" } };
  const jobTemplate = { metadata: { labels: { app: "a" } }, spec: { template } };
  const full = { schedule: "*/5 * * * *", timeZone: "Etc/UTC", jobTemplate, ...spec };
  await api.create(CRON_JOBS, { namespace: "default", object: { metadata: { name: "c" }, spec: full } }, signal);
  await made.settle();
  const get = () => api.get(CRON_JOBS, { namespace: "default", name: "c" }, signal);
  const jobs = async () => (await api.list(JOBS, { namespace: "default" }, signal)).items;
  const finish = async (phase: "Succeeded" | "Failed" = "Succeeded") => {
    for (const pod of await podsOf(made)) {
      if (pod.status?.phase === "Pending") await setPodStatus(made, pod, { phase });
    }
  };
  const reasons = async () =>
    (await api.list(EVENTS, { namespace: "default" }, signal)).items.map(({ reason }) => reason);
  return { made, get, jobs, finish, reasons };
}

test("a job is created at its time, and no sooner", async (t) => {
  const { made, get, jobs, finish, reasons } = await bench(t);
  await made.advance(4 * MINUTE);
  assert.equal((await jobs()).length, 0);
  await made.advance(MINUTE + 200);
  const [job] = await jobs();
  assert.equal(job?.metadata.name, `c-${Date.parse("2026-01-01T00:05:00Z") / MINUTE}`);
  assert.equal(job?.metadata.labels?.app, "a");
  assert.equal(job?.metadata.annotations?.["batch.kubernetes.io/cronjob-scheduled-timestamp"], "2026-01-01T00:05:00Z");
  const { status } = await get();
  assert.equal(status?.lastScheduleTime, "2026-01-01T00:05:00Z");
  assert.deepEqual(
    status?.active?.map(({ name }) => name),
    [job?.metadata.name],
  );
  await finish();
  assert.equal((await get()).status?.active, undefined);
  assert.equal((await get()).status?.lastSuccessfulTime, "2026-01-01T00:05:00Z");
  assert.ok((await reasons()).includes("SawCompletedJob"));
  await made.advance(5 * MINUTE);
  assert.equal((await jobs()).length, 2);
});

test("Forbid waits for the last job, Replace ends it, Allow does not care", async (t) => {
  for (const [concurrencyPolicy, want] of [
    ["Allow", 2],
    ["Forbid", 1],
    ["Replace", 1],
  ] as const) {
    const { made, jobs, get } = await bench(t, { concurrencyPolicy });
    await made.advance(5 * MINUTE + 200);
    const [first] = await jobs();
    await made.advance(5 * MINUTE);
    const left = await jobs();
    assert.equal(left.length, want, concurrencyPolicy);
    const isKept = left.some(({ metadata }) => metadata.uid === first?.metadata.uid);
    assert.equal(isKept, concurrencyPolicy !== "Replace", concurrencyPolicy);
    assert.equal((await get()).status?.active?.length, want, concurrencyPolicy);
  }
});

test("only so many jobs that have ended are kept", async (t) => {
  const { made, jobs, finish } = await bench(t, { successfulJobsHistoryLimit: 2, failedJobsHistoryLimit: 1 });
  for (const phase of ["Succeeded", "Failed", "Succeeded", "Succeeded"] as const) {
    await made.advance(5 * MINUTE + 200);
    for (let failure = 0; failure < 7; failure++) {
      await finish(phase);
      if (phase === "Failed") await made.advance(1);
    }
  }
  const complete = (await jobs()).filter(({ status }) => status?.conditions?.some(({ type }) => type === "Complete"));
  assert.equal(complete.length, 2);
});

test("a suspended CronJob starts nothing, and only the last missed time when it goes on", async (t) => {
  const { made, jobs } = await bench(t, { suspend: true });
  await made.advance(17 * MINUTE);
  assert.equal((await jobs()).length, 0);
  const body = { spec: { suspend: false } };
  await made.api.patch(CRON_JOBS, { namespace: "default", name: "c", type: "merge", body }, made.signal);
  await made.settle();
  const names = (await jobs()).map(({ metadata }) => metadata.name);
  assert.deepEqual(names, [`c-${Date.parse("2026-01-01T00:15:00Z") / MINUTE}`]);
});

test("a time that is past its deadline is left out", async (t) => {
  const { made, jobs } = await bench(t, { suspend: true, startingDeadlineSeconds: 60 });
  await made.advance(17 * MINUTE);
  const body = { spec: { suspend: false } };
  await made.api.patch(CRON_JOBS, { namespace: "default", name: "c", type: "merge", body }, made.signal);
  await made.settle();
  assert.equal((await jobs()).length, 0);
  await made.advance(3 * MINUTE + 200);
  assert.equal((await jobs()).length, 1);
});

test("times are those of the time zone", async (t) => {
  const { made, jobs } = await bench(t, { schedule: "0 6 * * *", timeZone: "Asia/Kolkata" });
  await made.advance(30 * MINUTE + 200);
  const [job] = await jobs();
  const text = job?.metadata.annotations?.["batch.kubernetes.io/cronjob-scheduled-timestamp"];
  assert.equal(text, "2026-01-01T06:00:00+05:30");
});

test("a job that is due by a jump of the clock is started soon, not after the wait that was", async (t) => {
  const { made, jobs } = await bench(t, { schedule: "0 12 * * *" });
  made.clock.setWall(Date.parse("2026-03-01T12:30:00Z"));
  await made.advance(5 * MINUTE);
  assert.deepEqual(
    (await jobs()).map(({ metadata }) => metadata.name),
    [`c-${Date.parse("2026-03-01T12:00:00Z") / MINUTE}`],
  );
});
