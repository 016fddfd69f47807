import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import type { ContainerProbes } from "../../model/probe.ts";
import { planPod } from "./plan.ts";
import type { PlanMemory, PodPlan } from "./pod-plan.ts";

const app = { name: "app", image: "app:1" };
const side = { name: "side", image: "side:1" };
const now = { wall: 100_000, mono: 50_000 };
const probe = { exec: { command: ["x"] } };
const base = pod().container("app", { livenessProbe: probe, startupProbe: probe });

interface Case {
  readonly name: string;
  readonly pod: Pod;
  readonly probes: Partial<ContainerProbes>;
  readonly containers?: readonly ObservedContainer[];
  readonly memory?: Partial<PlanMemory>;
  readonly want: readonly string[];
}

function brief(plan: PodPlan): string[] {
  if (plan.kind === "finish") return ["finish"];
  return plan.actions.map((action) => {
    if (action.do === "killContainer") {
      const grace = action.graceSeconds === undefined ? "" : ` in ${action.graceSeconds}s`;
      return `kill ${action.container.id}${grace}: ${action.why}${action.replace === true ? " (replace)" : ""}`;
    }
    if (action.do !== "startContainer") return action.do;
    const { name, attempt, previousEnd } = action.start;
    return `start ${name} ${attempt}${previousEnd === undefined ? "" : ` after ${previousEnd}`}`;
  });
}

const ended = seen(app, { state: "exited", createdAt: 50_000, finishedAt: 95_000 });
const again = seen(app, { attempt: 1, createdAt: 96_000 });
const killed = "Container app failed liveness probe, will be restarted";

const cases: readonly Case[] = [
  { name: "success leaves it alone", pod: base.build(), probes: { liveness: "success", startup: "success" }, want: [] },
  { name: "unknown leaves it alone", pod: base.build(), probes: { startup: "unknown" }, want: [] },
  {
    name: "liveness failed: killed and restarted",
    pod: base.build(),
    probes: { liveness: "failure" },
    want: [`kill app-0: ${killed} (replace)`, "start app 1"],
  },
  {
    name: "startup failed: killed and restarted",
    pod: base.build(),
    probes: { startup: "failure" },
    want: ["kill app-0: Container app failed startup probe, will be restarted (replace)", "start app 1"],
  },
  {
    name: "OnFailure: restarted whatever the exit code will be",
    pod: base.restart("OnFailure").build(),
    probes: { liveness: "failure" },
    want: [`kill app-0: ${killed} (replace)`, "start app 1"],
  },
  {
    name: "Never: the last container takes the pod with it",
    pod: pod().container("app", { livenessProbe: probe }).restart("Never").build(),
    probes: { liveness: "failure" },
    want: ["finish"],
  },
  {
    name: "Never beside a container that goes on: killed, not started",
    pod: pod().container("app", { livenessProbe: probe }).container("side").restart("Never").build(),
    containers: [seen(app), seen(side)],
    probes: { liveness: "failure" },
    want: ["kill app-0: Container app failed liveness probe"],
  },
  {
    name: "the container's own policy wins over the pod's",
    pod: pod().container("app", { livenessProbe: probe, restartPolicy: "Never" }).container("side").build(),
    containers: [seen(app), seen(side)],
    probes: { liveness: "failure" },
    want: ["kill app-0: Container app failed liveness probe"],
  },
  {
    name: "the probe's own grace period",
    pod: pod()
      .container("app", { livenessProbe: { ...probe, terminationGracePeriodSeconds: 3 } })
      .build(),
    probes: { liveness: "failure" },
    want: [`kill app-0 in 3s: ${killed} (replace)`, "start app 1"],
  },
  {
    name: "the grace period of the failed probe, not of the other",
    pod: pod()
      .container("app", { startupProbe: probe, livenessProbe: { ...probe, terminationGracePeriodSeconds: 3 } })
      .build(),
    probes: { startup: "failure" },
    want: ["kill app-0: Container app failed startup probe, will be restarted (replace)", "start app 1"],
  },
  {
    name: "the result of an earlier instance does not kill the new one",
    pod: base.restart("Always").build(),
    probes: { containerId: "app-0", liveness: "failure" },
    containers: [again, ended],
    want: [],
  },
  {
    name: "a second kill counts the termination before it",
    pod: base.restart("Always").build(),
    probes: { containerId: "app-1", liveness: "failure" },
    containers: [again, ended],
    want: [`kill app-1: ${killed} (replace)`, "start app 2 after 95000"],
  },
  {
    name: "in back-off it is killed, and restarted when that is over",
    pod: base.restart("Always").build(),
    probes: { containerId: "app-1", liveness: "failure" },
    containers: [again, ended],
    memory: { crashes: new Map([["app", { delayMs: 10_000, restartedAt: 90_000 }]]) },
    want: [`kill app-1: ${killed}`],
  },
  {
    name: "another image wins over a failed probe",
    pod: pod().container("app", { image: "app:2", livenessProbe: probe }).build(),
    probes: { liveness: "failure" },
    want: ["kill app-0: Container app definition changed, will be restarted (replace)", "start app 1"],
  },
];

describe("failed probes", () => {
  for (const { name, pod: of, probes, containers, memory, want } of cases) {
    test(name, () => {
      const none = { started: undefined, ready: undefined, liveness: undefined, startup: undefined };
      const plan = planPod(
        of,
        {
          observed: observed(of, [sandbox()], containers ?? [seen(app)]),
          memory: { crashes: new Map(), holds: new Map(), replacing: new Set(), ...memory },
          probes: new Map([["app", { containerId: "app-0", ...none, ...probes }]]),
        },
        now,
      );
      assert.deepEqual(brief(plan), want);
    });
  }
});
