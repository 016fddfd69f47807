import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { KillRecorder } from "./kill-recorder.ts";
import { OomCounts } from "./oom-counts.ts";

const web = pod("web", "u1").container("main").build();
const ID = "0123456789abcdef";
const known = observed(web, [sandbox()], [seen({ name: "main" }, { id: ID })]);
const kill = { podUid: "u1", containerId: ID, process: "hog", pid: 5, cgroup: "/c", isSystem: false };

function scene(pods: Map<string, ObservedPod> = new Map([["u1", known]])) {
  const events: string[] = [];
  const oomKills = new OomCounts();
  const notified: string[] = [];
  const clock = new FakeClock();
  const recorder = new KillRecorder({
    clock,
    oomKills,
    runtime: { killedForMemory: (id: string) => void notified.push(id) },
    observer: { get: (uid: string) => pods.get(uid) },
    journal: {
      of: ({ name }: { name: string }) => ({
        event: (_type: "Warning", reason: string, { message, container }: { message: string; container: string }) =>
          void events.push(`${name} ${container} ${reason}: ${message}`),
      }),
    },
  });
  return { recorder, clock, events, oomKills, notified };
}

test("a kill is counted for its container, and an event with the reason", () => {
  const { recorder, events, oomKills, notified } = scene();
  recorder.record(kill);
  recorder.record({ ...kill, isSystem: true });
  assert.deepEqual(events, [
    "web main OOMKilling: Container main: the kernel killed process hog because its memory limit was reached",
    "web main OOMKilling: Container main: the kernel killed process hog because the node ran out of memory",
  ]);
  assert.equal(oomKills.of("u1", "main"), 2);
  assert.deepEqual(notified, [ID, ID]);
});

test("a kill in a container whose start was not observed yet is recorded once it is", async () => {
  const pods = new Map<string, ObservedPod>();
  const { recorder, clock, events, oomKills } = scene(pods);
  recorder.record(kill);
  await clock.advance(100);
  assert.deepEqual(events, []);
  pods.set("u1", observed(web, [sandbox()], []));
  await clock.advance(500);
  assert.deepEqual(events, []);
  pods.set("u1", known);
  await clock.advance(60_000);
  assert.deepEqual([events.length, oomKills.of("u1", "main")], [1, 1]);
});

test("a kill in a container that never becomes known is dropped, and so are those that wait at the end", async () => {
  const pods = new Map<string, ObservedPod>();
  const { recorder, clock, events } = scene(pods);
  recorder.record(kill);
  await clock.advance(40_000);
  pods.set("u1", known);
  await clock.advance(3_600_000);
  assert.deepEqual(events, []);
  pods.clear();
  recorder.record(kill);
  recorder.close();
  pods.set("u1", known);
  await clock.advance(60_000);
  assert.deepEqual(events, []);
});

test("kills of containers that nobody knows are kept up to a limit", async () => {
  const pods = new Map<string, ObservedPod>();
  const { recorder, clock, oomKills } = scene(pods);
  for (let count = 0; count < 1000; count++) recorder.record(kill);
  pods.set("u1", known);
  await clock.advance(60_000);
  assert.equal(oomKills.of("u1", "main"), 200);
});
