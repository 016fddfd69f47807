import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job, JobStatus, Pod } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import { assessJob } from "./assess-job.ts";
import { JobTracking } from "./job-tracking.ts";

const { signal } = new AbortController();

const ended = (uid: string, phase: string): Pod => ({
  metadata: { name: uid, namespace: "default", uid, finalizers: ["batch.kubernetes.io/job-tracking"] },
  spec: { containers: [] },
  status: { phase },
});

/** Tracks a job whose pods have ended; resolves with each status that was written. */
async function track(status: JobStatus, pods: readonly Pod[]): Promise<readonly JobStatus[]> {
  const written: JobStatus[] = [];
  const api = {
    update: (_resource: unknown, { object }: { readonly object: Job }) => {
      written.push(object.status ?? {});
      return Promise.resolve(object);
    },
    patch: (_resource: unknown, { name }: { readonly name: string }) =>
      Promise.resolve(pods.find(({ metadata }) => metadata.name === name)),
  };
  const informers = { of: () => ({ wrote: () => undefined }) };
  const job: Job = { metadata: { name: "j", namespace: "default" }, spec: { completions: 5, template: {} }, status };
  const facts = { job, pods, isDeleting: () => false, nowMs: 0 };
  // reason: nothing else of them is called
  const tracking = new JobTracking({ api, informers } as unknown as ControllerDeps);
  await tracking.track(
    { facts, assessment: assessJob(facts), status, verdict: undefined, terminating: 0 },
    () => undefined,
    { signal },
  );
  return written;
}

test("pods that an earlier controller noted and did not release are counted once", async () => {
  const uncountedTerminatedPods = { succeeded: ["a"], failed: ["b"] };
  const written = await track({ succeeded: 1, failed: 1, uncountedTerminatedPods }, [
    ended("a", "Succeeded"),
    ended("b", "Failed"),
  ]);
  assert.deepEqual(written.at(-1), { succeeded: 2, failed: 2, uncountedTerminatedPods: {} });
});

test("pods are noted before they are released, and counted then", async () => {
  const written = await track({}, [ended("a", "Succeeded"), ended("b", "Failed"), ended("c", "Running")]);
  assert.deepEqual(
    written.map(({ succeeded, failed, uncountedTerminatedPods }) => [succeeded, failed, uncountedTerminatedPods]),
    [
      [0, 0, { succeeded: ["a"], failed: ["b"] }],
      [1, 1, {}],
    ],
  );
});
