import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { derive } from "../../../test/support/derive.ts";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { StatusFacts } from "./derive.ts";

const app = { name: "app", image: "app:1" };
const side = { name: "side", image: "side:1" };
const init = { name: "init", image: "init:1" };
const ended = { state: "exited" } as const;

const plain = pod().container("app").build();
const never = pod().container("app").container("side").restart("Never").build();
const withInit = pod().init("init").container("app").build();
const initNever = pod().init("init").container("app").restart("Never").build();

const phases: { name: string; pod: Pod; observed: ObservedPod; more?: Partial<StatusFacts>; want: string }[] = [
  { name: "nothing yet", pod: plain, observed: observed(plain), want: "Pending" },
  {
    name: "created is not running",
    pod: plain,
    observed: observed(plain, [sandbox()], [seen(app, { state: "created" })]),
    want: "Pending",
  },
  { name: "all running", pod: plain, observed: observed(plain, [sandbox()], [seen(app)]), want: "Running" },
  {
    name: "crashed, will restart",
    pod: plain,
    observed: observed(plain, [sandbox()], [seen(app, { ...ended, exitCode: 1 })]),
    want: "Running",
  },
  {
    name: "one of two ended",
    pod: never,
    observed: observed(never, [sandbox()], [seen(side), seen(app, ended)]),
    want: "Running",
  },
  {
    name: "one of two not there yet",
    pod: never,
    observed: observed(never, [sandbox()], [seen(app)]),
    want: "Pending",
  },
  {
    name: "all succeeded",
    pod: never,
    observed: observed(never, [sandbox()], [seen(side, ended), seen(app, ended)]),
    want: "Succeeded",
  },
  {
    name: "one failed",
    pod: never,
    observed: observed(never, [sandbox()], [seen(side, { ...ended, exitCode: 2 }), seen(app, ended)]),
    want: "Failed",
  },
  { name: "init runs", pod: withInit, observed: observed(withInit, [sandbox()], [seen(init)]), want: "Pending" },
  {
    name: "init done, app to come",
    pod: withInit,
    observed: observed(withInit, [sandbox()], [seen(init, ended)]),
    want: "Pending",
  },
  {
    name: "init done, app runs",
    pod: withInit,
    observed: observed(withInit, [sandbox()], [seen(app), seen(init, ended)]),
    want: "Running",
  },
  {
    name: "init failed for good",
    pod: initNever,
    observed: observed(initNever, [sandbox()], [seen(init, { ...ended, exitCode: 1 })]),
    want: "Failed",
  },
  {
    name: "init failed, is tried again",
    pod: withInit,
    observed: observed(withInit, [sandbox()], [seen(init, { ...ended, exitCode: 1 })]),
    want: "Pending",
  },
  {
    name: "stopped from outside with exit 0",
    pod: plain,
    observed: observed(plain, [sandbox({ state: "notReady" })], [seen(app, ended)]),
    more: { terminating: true, finished: true },
    want: "Succeeded",
  },
  {
    name: "stopped before it began",
    pod: plain,
    observed: observed(plain),
    more: { terminating: true, finished: true },
    want: "Failed",
  },
  {
    name: "a final phase never changes",
    pod: plain,
    observed: observed(plain, [sandbox()], [seen(app)]),
    more: { previous: { phase: "Failed", reason: "Evicted" } },
    want: "Failed",
  },
];

describe("the phase", () => {
  for (const c of phases) test(c.name, () => assert.equal(derive(c.pod, c.observed, c.more).phase, c.want));
});

describe("container statuses", () => {
  test("a crash loop shows the waiting reason, and what ended last beside it", () => {
    const crashed = seen(app, { ...ended, exitCode: 3, attempt: 4, reason: "Error", message: "boom" });
    const waiting = new Map([["app", { reason: "CrashLoopBackOff", message: "back-off 40s" }]]);
    const status = derive(plain, observed(plain, [sandbox()], [crashed]), { waiting }).containerStatuses?.[0];
    assert.deepEqual(status?.state, { waiting: { reason: "CrashLoopBackOff", message: "back-off 40s" } });
    assert.equal(status?.lastState?.terminated?.exitCode, 3);
    assert.equal(status?.lastState?.terminated?.message, "boom");
    assert.equal(status?.restartCount, 4);
    assert.deepEqual([status?.ready, status?.started], [false, false]);
  });

  test("the instance before the running one is the last state", () => {
    const both = [seen(app, { attempt: 1 }), seen(app, { ...ended, exitCode: 1 })];
    const status = derive(plain, observed(plain, [sandbox()], both)).containerStatuses?.[0];
    assert.equal(status?.containerID, "containerd://app-1");
    assert.equal(status?.lastState?.terminated?.containerID, "containerd://app-0");
    assert.deepEqual([status?.ready, status?.started], [true, true]);
  });

  test("before the first container there is a reason to wait", () => {
    assert.equal(derive(plain, observed(plain)).containerStatuses?.[0]?.state?.waiting?.reason, "ContainerCreating");
    assert.equal(
      derive(withInit, observed(withInit)).containerStatuses?.[0]?.state?.waiting?.reason,
      "PodInitializing",
    );
  });

  test("a running container that vanished counts as a restart", () => {
    const before = derive(plain, observed(plain, [sandbox()], [seen(app)]));
    const status = derive(plain, observed(plain, [sandbox()]), { previous: before }).containerStatuses?.[0];
    assert.equal(status?.lastState?.terminated?.reason, "ContainerStatusUnknown");
    assert.equal(status?.restartCount, 1);
  });

  test("messages of ended containers share 12 KiB, init containers counted", () => {
    const long = (name: "app" | "init") =>
      seen({ name, image: `${name}:1` }, { ...ended, exitCode: 1, message: "x".repeat(10_000) });
    const what = observed(initNever, [sandbox()], [long("app"), long("init")]);
    const status = derive(initNever, what);
    assert.equal(status.containerStatuses?.[0]?.state?.terminated?.message?.length, 6144);
    assert.equal(status.initContainerStatuses?.[0]?.state?.terminated?.message?.length, 6144);
    const alone = derive(plain, observed(plain, [sandbox()], [long("app")]));
    assert.equal(alone.containerStatuses?.[0]?.state?.terminated?.message?.length, 10_000);
  });

  test("a removed init container of a started pod counts as done", () => {
    const status = derive(withInit, observed(withInit, [sandbox()], [seen(app)])).initContainerStatuses?.[0];
    assert.equal(status?.state?.terminated?.exitCode, 0);
    assert.equal(status?.ready, true);
  });

  test("a Never pod whose init container failed ends with its app still waiting", () => {
    const what = observed(initNever, [sandbox({ state: "notReady" })], [seen(init, { ...ended, exitCode: 1 })]);
    const status = derive(initNever, what, { terminating: true, finished: true });
    assert.equal(status.phase, "Failed");
    assert.equal(status.containerStatuses?.[0]?.state?.waiting?.reason, "PodInitializing");
  });
});

describe("conditions, times and addresses", () => {
  test("a transition time changes only with the status", () => {
    const what = observed(plain, [sandbox()], [seen(app)]);
    const first = derive(plain, what);
    const later = derive(plain, what, { previous: first, now: Date.UTC(2026, 0, 2) });
    assert.deepEqual(later.conditions, first.conditions);
    assert.equal(later.startTime, first.startTime);
    const crashed = derive(plain, observed(plain, [sandbox()], [seen(app, { ...ended, exitCode: 1 })]), {
      previous: later,
      now: Date.UTC(2026, 0, 3),
    });
    const ready = crashed.conditions?.find(({ type }) => type === "Ready");
    assert.deepEqual(
      [ready?.status, ready?.reason, ready?.message, ready?.lastTransitionTime],
      ["False", "ContainersNotReady", "containers with unready status: [app]", "2026-01-03T00:00:00Z"],
    );
  });

  test("the start time goes on from the sandbox that an earlier run of the agent made", () => {
    const made = Date.UTC(2025, 11, 31);
    const status = derive(plain, observed(plain, [sandbox({ createdAt: made })], [seen(app)]));
    assert.equal(status.startTime, "2025-12-31T00:00:00Z");
  });

  test("the IP is kept after the sandbox stopped", () => {
    const before = derive(plain, observed(plain, [sandbox()], [seen(app)]));
    const after = derive(plain, observed(plain, [sandbox({ state: "notReady", ips: [] })]), { previous: before });
    assert.equal(after.podIP, "10.0.0.5");
  });
});
