import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { planPod } from "./plan.ts";
import type { PlanMemory, PodPlan } from "./pod-plan.ts";

const app = { name: "app", image: "app:1" };
const side = { name: "side", image: "side:1" };
const one = { name: "one", image: "one:1" };
const two = { name: "two", image: "two:1" };
const now = { wall: 100_000, mono: 50_000 };
const nothing: PlanMemory = { crashes: new Map(), holds: new Map(), replacing: new Set() };

/** A plan in one line each: what a reader of a failing test wants to see. */
function brief(plan: PodPlan): string[] {
  if (plan.kind === "finish") return ["finish"];
  const actions = plan.actions.map((action) => {
    switch (action.do) {
      case "createSandbox":
        return `sandbox ${action.attempt}`;
      case "startContainer":
        return `start ${action.start.name} ${action.start.attempt ?? "?"}${action.start.replaces ? " for the created" : ""}`;
      case "killContainer":
        return `kill ${action.container.id}`;
      case "removeContainer":
        return `remove ${action.container.id}`;
      case "removeSandbox":
        return `remove ${action.sandboxId}`;
      case "stopPod":
        return "stop";
      case "resizeContainer":
        return `resize ${action.running.id}`;
      case "resizePod":
        return "resize pod";
      case "restartAll":
        return `restart all for ${action.triggers.map(({ name }) => name).join(" ")}`;
    }
  });
  return [...actions, ...plan.waits.map((wait) => `wait ${wait.container} ${wait.afterMs} ${wait.reason}`)];
}

interface Case {
  readonly name: string;
  readonly pod: Pod;
  readonly observed: (of: Pod) => ObservedPod;
  readonly memory?: Partial<PlanMemory>;
  readonly want: readonly string[];
}

const plain = pod().container("app").build();
const never = pod().container("app").restart("Never").build();
const onFailure = pod().container("app").container("side").restart("OnFailure").build();
const withInit = pod().init("one").init("two").container("app").build();
const ended = { state: "exited" } as const;

const all = { restartPolicy: "Never", restartPolicyRules: [rule("RestartAllContainers", 42)] };
const restartsAll = pod().init("one").container("app", all).container("side").restart("Never").build();
const debugged = pod()
  .container("app")
  .with({ ephemeralContainers: [{ name: "debug", image: "debug:1" }] })
  .build();

function rule(action: string, ...values: number[]) {
  return { action, exitCodes: { operator: "In", values } };
}

const cases: readonly Case[] = [
  {
    name: "an ephemeral container is started beside what runs",
    pod: debugged,
    observed: (p) => observed(p, [sandbox()], [seen(app)]),
    want: ["start debug ?"],
  },
  {
    name: "an ephemeral container starts before the init containers are done",
    pod: { ...debugged, spec: { ...debugged.spec, initContainers: [one] } },
    observed: (p) => observed(p, [sandbox()], [seen(one)]),
    want: ["start debug ?"],
  },
  {
    name: "an ephemeral container that has terminated is never restarted",
    pod: debugged,
    observed: (p) => observed(p, [sandbox()], [seen(app), seen({ name: "debug", image: "debug:1" }, ended)]),
    want: [],
  },
  {
    name: "an ephemeral container does not keep a pod alive",
    pod: { ...debugged, spec: { ...debugged.spec, restartPolicy: "Never" } },
    observed: (p) =>
      observed(p, [sandbox()], [seen(app, ended), seen({ name: "debug", image: "debug:1" }, { state: "running" })]),
    want: ["finish"],
  },
  {
    name: "a rule that restarts all: everything is killed and removed, the trigger last",
    pod: restartsAll,
    observed: (p) => observed(p, [sandbox()], [seen(app, { ...ended, exitCode: 42 }), seen(side), seen(one, ended)]),
    want: ["restart all for app", "kill side-0", "remove side-0", "remove one-0", "remove app-0"],
  },
  {
    name: "another exit code triggers nothing",
    pod: restartsAll,
    observed: (p) => observed(p, [sandbox()], [seen(app, { ...ended, exitCode: 41 }), seen(side), seen(one, ended)]),
    want: [],
  },
  {
    name: "repeated restarts of all containers back off",
    pod: restartsAll,
    observed: (p) =>
      observed(
        p,
        [sandbox()],
        [seen(app, { ...ended, exitCode: 42, finishedAt: 99_000 }), seen(side), seen(one, ended)],
      ),
    memory: { crashes: new Map([["*", { delayMs: 10_000, restartedAt: 98_000 }]]) },
    want: ["wait app 9000 CrashLoopBackOff"],
  },
  {
    name: "a trigger of an earlier sandbox does not count",
    pod: restartsAll,
    observed: (p) =>
      observed(
        p,
        [sandbox({ attempt: 1 }), sandbox({ state: "notReady" })],
        [seen(one, { attempt: 1, sandboxId: "sandbox-1" }), seen(app, { ...ended, exitCode: 42 })],
      ),
    want: [],
  },
  {
    name: "a new pod gets a sandbox and its containers",
    pod: plain,
    observed: (p) => observed(p),
    want: ["sandbox 0", "start app ?"],
  },
  {
    name: "a running pod is left alone",
    pod: plain,
    observed: (p) => observed(p, [sandbox()], [seen(app)]),
    want: [],
  },
  {
    name: "the first crash restarts at once, one attempt later",
    pod: plain,
    observed: (p) => observed(p, [sandbox()], [seen(app, { ...ended, exitCode: 1 })]),
    want: ["start app 1"],
  },
  {
    name: "a crash within the back-off waits for the rest of it",
    pod: plain,
    observed: (p) => observed(p, [sandbox()], [seen(app, { ...ended, attempt: 2, finishedAt: 97_000 })]),
    memory: { crashes: new Map([["app", { delayMs: 20_000, restartedAt: 96_000 }]]) },
    want: ["wait app 17000 CrashLoopBackOff"],
  },
  {
    name: "another image ends the back-off",
    pod: plain,
    observed: (p) => observed(p, [sandbox()], [seen(app, { ...ended, finishedAt: 97_000, hash: "other" })]),
    memory: { crashes: new Map([["app", { delayMs: 20_000, restartedAt: 96_000 }]]) },
    want: ["start app 1"],
  },
  {
    name: "a failed start backs off",
    pod: plain,
    observed: (p) => observed(p, [sandbox()]),
    memory: {
      holds: new Map([["app", { untilMono: 53_000, hash: seen(app).hash, reason: "ImagePullBackOff", message: "" }]]),
    },
    want: ["wait app 3000 ImagePullBackOff"],
  },
  {
    name: "the back-off of another image does not count",
    pod: plain,
    observed: (p) => observed(p, [sandbox()]),
    memory: { holds: new Map([["app", { untilMono: 53_000, hash: "other", reason: "ErrImagePull", message: "" }]]) },
    want: ["start app ?"],
  },
  {
    name: "a changed image kills and restarts, whatever the policy",
    pod: never,
    observed: (p) => observed(p, [sandbox()], [seen(app, { hash: "other" })]),
    want: ["kill app-0", "start app 1"],
  },
  {
    name: "a container that was killed to be replaced starts, though the policy is Never",
    pod: never,
    observed: (p) => observed(p, [sandbox()], [seen(app, { ...ended, hash: "other", exitCode: 137 })]),
    memory: { replacing: new Set(["app"]) },
    want: ["start app 1"],
  },
  {
    name: "Never: a terminated container ends the pod",
    pod: never,
    observed: (p) => observed(p, [sandbox()], [seen(app, { ...ended, exitCode: 1 })]),
    want: ["finish"],
  },
  {
    name: "OnFailure: only the failed one restarts",
    pod: onFailure,
    observed: (p) => observed(p, [sandbox()], [seen(side, { ...ended, exitCode: 3 }), seen(app, ended)]),
    want: ["start side 1"],
  },
  {
    name: "OnFailure: all succeeded ends the pod",
    pod: onFailure,
    observed: (p) => observed(p, [sandbox()], [seen(side, ended), seen(app, ended)]),
    want: ["finish"],
  },
  {
    name: "a dead sandbox is stopped and replaced, counters go on",
    pod: plain,
    observed: (p) => observed(p, [sandbox({ state: "notReady" })], [seen(app, { ...ended, attempt: 3 })]),
    want: ["stop", "sandbox 1", "start app 4"],
  },
  {
    name: "Never: a dead sandbox ends a pod that had begun",
    pod: never,
    observed: (p) => observed(p, [sandbox({ state: "notReady" })], [seen(app, ended)]),
    want: ["finish"],
  },
  {
    name: "Never: a sandbox that died before any container existed is replaced",
    pod: never,
    observed: (p) => observed(p, [sandbox({ state: "notReady" })]),
    want: ["stop", "sandbox 1", "start app ?"],
  },
  {
    name: "OnFailure: what succeeded does not run again in the new sandbox",
    pod: onFailure,
    observed: (p) =>
      observed(p, [sandbox({ state: "notReady" })], [seen(side, { ...ended, exitCode: 3 }), seen(app, ended)]),
    want: ["stop", "sandbox 1", "start side 1"],
  },
  {
    name: "two ready sandboxes are one too many",
    pod: plain,
    observed: (p) => observed(p, [sandbox({ attempt: 1 }), sandbox()]),
    want: ["stop", "sandbox 2", "start app ?"],
  },
  {
    name: "a sandbox without an IP is replaced",
    pod: plain,
    observed: (p) => observed(p, [sandbox({ ips: [] })]),
    want: ["stop", "sandbox 1", "start app ?"],
  },
  {
    name: "on the host network no IP is needed",
    pod: pod().container("app").with({ hostNetwork: true }).build(),
    observed: (p) => observed(p, [sandbox({ ips: [], hostNetwork: true })], [seen(app)]),
    want: [],
  },
  {
    name: "a container that was created but never started is created again with the same attempt",
    pod: plain,
    observed: (p) => observed(p, [sandbox()], [seen(app, { state: "created", attempt: 2 })]),
    want: ["start app 2 for the created"],
  },
  {
    name: "a container in unknown state is killed before the restart",
    pod: plain,
    observed: (p) => observed(p, [sandbox()], [seen(app, { state: "unknown" })]),
    want: ["kill app-0", "start app 1"],
  },
  {
    name: "init containers come first, one by one",
    pod: withInit,
    observed: (p) => observed(p),
    want: ["sandbox 0", "start one ?"],
  },
  {
    name: "a running init container is waited for",
    pod: withInit,
    observed: (p) => observed(p, [sandbox()], [seen(one)]),
    want: [],
  },
  {
    name: "the next init container follows a success",
    pod: withInit,
    observed: (p) => observed(p, [sandbox()], [seen(one, ended)]),
    want: ["start two ?"],
  },
  {
    name: "after the last init container the regular ones start",
    pod: withInit,
    observed: (p) => observed(p, [sandbox()], [seen(two, ended), seen(one, ended)]),
    want: ["start app ?"],
  },
  {
    name: "a failed init container is restarted",
    pod: withInit,
    observed: (p) => observed(p, [sandbox()], [seen(one, { ...ended, exitCode: 2 })]),
    want: ["start one 1"],
  },
  {
    name: "an init container that ran out of memory failed, even with exit code 0",
    pod: withInit,
    observed: (p) => observed(p, [sandbox()], [seen(one, { ...ended, reason: "OOMKilled" })]),
    want: ["start one 1"],
  },
  {
    name: "Never: a failed init container ends the pod",
    pod: pod().init("one").container("app").restart("Never").build(),
    observed: (p) => observed(p, [sandbox()], [seen(one, { ...ended, exitCode: 2 })]),
    want: ["finish"],
  },
  {
    name: "a started pod never goes back to its init containers",
    pod: withInit,
    observed: (p) => observed(p, [sandbox()], [seen(app), seen(two, ended), seen(one, ended)]),
    want: [],
  },
  {
    name: "a new sandbox runs the init containers again, the old ones removed",
    pod: withInit,
    observed: (p) =>
      observed(p, [sandbox({ state: "notReady" })], [seen(app, ended), seen(two, ended), seen(one, ended)]),
    want: ["stop", "remove two-0", "remove one-0", "sandbox 1", "start one 1"],
  },
  {
    name: "one terminated instance is kept, older ones are removed",
    pod: plain,
    observed: (p) =>
      observed(
        p,
        [sandbox()],
        [seen(app, { attempt: 3 }), seen(app, { ...ended, attempt: 2 }), seen(app, { ...ended, attempt: 1 })],
      ),
    want: ["remove app-1"],
  },
  {
    name: "an old sandbox is removed once it is empty",
    pod: plain,
    observed: (p) =>
      observed(p, [sandbox({ attempt: 1 }), sandbox({ state: "notReady" })], [seen(app, { sandboxId: "sandbox-1" })]),
    want: ["remove sandbox-0"],
  },
];

describe("planPod", () => {
  for (const c of cases) {
    test(c.name, () => {
      const memory = { ...nothing, ...c.memory };
      assert.deepEqual(brief(planPod(c.pod, { observed: c.observed(c.pod), memory }, now)), c.want);
    });
  }
});
