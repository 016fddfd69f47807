import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import type { Pod } from "../../model/generated/types.ts";
import { POD_DELETION_GRACE_PERIOD_ANNOTATION, POD_TERMINATION_GRACE_PERIOD_ANNOTATION } from "../../model/labels.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { graceFor } from "./grace.ts";
import { type ContainerKill, planTermination, type TerminationAction, type TerminationFacts } from "./termination.ts";

const app = { name: "app", image: "app:1" };
const proxy = { name: "proxy", image: "proxy:1" };
const logger = { name: "logger", image: "logger:1" };
const sidecar = { restartPolicy: "Always" };
const plain = pod().container("app").build();
const withSidecars = pod().init("logger", sidecar).init("proxy", sidecar).container("app").build();
const setup = { name: "setup", image: "setup:1" };
const debug = { name: "debug", image: "debug:1" };
const withDebug = pod()
  .init("setup")
  .init("proxy", sidecar)
  .container("app")
  .container("side")
  .with({ ephemeralContainers: [debug] })
  .build();
const orphan: Pod = { metadata: { uid: "u", name: "web", namespace: "default" }, spec: { containers: [] } };

function brief(action: TerminationAction): string {
  switch (action.do) {
    case "killContainers": {
      const names = (kills: readonly ContainerKill[]) =>
        kills.map((k) => `${k.container.id} ${k.graceSeconds}s`).join("+");
      const stages = action.stages.length === 0 ? [] : [action.stages.map(names).join(", then ")];
      return `kill ${[...stages, ...(action.beside.length === 0 ? [] : [names(action.beside)])].join(" beside ")}`;
    }
    case "stopSandboxes":
      return `stop ${action.sandboxIds.join("+")}`;
    case "removeInstances":
      return `remove ${[...action.containers.map(({ id }) => id), ...action.sandboxIds].join("+")}`;
    case "together":
      return action.sequences.map((sequence) => sequence.map(brief).join(", ")).join(" beside ");
    default:
      return action.do;
  }
}

interface Case {
  readonly name: string;
  readonly stage: "kill" | "cleanUp" | "remove";
  readonly pod?: Pod;
  readonly observed?: ObservedPod;
  readonly facts?: Partial<TerminationFacts>;
  readonly want: readonly string[];
}

const grace = (seconds: number) => ({ [POD_TERMINATION_GRACE_PERIOD_ANNOTATION]: String(seconds) });

const cases: readonly Case[] = [
  { name: "nothing runs: nothing to kill", stage: "kill", observed: observed(plain), want: [] },
  {
    name: "what runs is killed, then the sandbox is stopped",
    stage: "kill",
    observed: observed(plain, [sandbox()], [seen(app)]),
    want: ["kill app-0 30s", "stop sandbox-0"],
  },
  {
    name: "a terminated container is not killed, its sandbox is stopped all the same",
    stage: "kill",
    observed: observed(plain, [sandbox({ state: "notReady" })], [seen(app, { state: "exited" })]),
    want: ["stop sandbox-0"],
  },
  {
    name: "created and unknown containers are killed, too",
    stage: "kill",
    observed: observed(plain, [], [seen(app, { state: "created", attempt: 1 }), seen(app, { state: "unknown" })]),
    want: ["kill app-1 30s+app-0 30s"],
  },
  {
    name: "sidecars come after the rest, from last to first",
    stage: "kill",
    pod: withSidecars,
    observed: observed(withSidecars, [], [seen(app), seen(proxy), seen(logger)]),
    want: ["kill app-0 30s, then proxy-0 30s, then logger-0 30s"],
  },
  {
    name: "sidecars do not wait for init and ephemeral containers, nor for what is not known to run",
    stage: "kill",
    pod: withDebug,
    observed: observed(
      withDebug,
      [],
      [seen(app), seen({ name: "side" }, { state: "unknown" }), seen(proxy), seen(setup), seen(debug)],
    ),
    want: ["kill app-0 30s, then proxy-0 30s beside side-0 30s+setup-0 30s+debug-0 30s"],
  },
  {
    name: "the intent limits the grace period of the pod",
    stage: "kill",
    observed: observed(plain, [], [seen(app)]),
    facts: { graceSeconds: 5 },
    want: ["kill app-0 5s"],
  },
  {
    name: "a longer intent does not lengthen it",
    stage: "kill",
    observed: observed(plain, [], [seen(app)]),
    facts: { graceSeconds: 600 },
    want: ["kill app-0 30s"],
  },
  {
    name: "an orphaned pod's containers have the grace period that was recorded on each",
    stage: "kill",
    pod: orphan,
    observed: observed(orphan, [], [seen(app, { annotations: grace(90) }), seen(proxy, { annotations: grace(7) })]),
    facts: { graceSeconds: Number.POSITIVE_INFINITY },
    want: ["kill app-0 90s+proxy-0 7s"],
  },
  {
    name: "the source still has the pod: cleaned up, not removed",
    stage: "cleanUp",
    want: ["tearDownVolumes", "removeCgroup"],
  },
  { name: "the removal that follows cleans up itself", stage: "cleanUp", facts: { isWanted: false }, want: [] },
  {
    name: "everything goes, the directory last",
    stage: "remove",
    observed: observed(plain, [sandbox()], [seen(app, { state: "exited" })]),
    want: [
      "remove app-0+sandbox-0 beside tearDownVolumes, removeCgroup",
      ...["removeLogs", "removeDirectory", "releaseUserNamespace"],
    ],
  },
  {
    name: "logs stay for the next life under the same UID",
    stage: "remove",
    observed: observed(plain),
    facts: { keepLogs: true },
    want: ["remove  beside tearDownVolumes, removeCgroup", "removeDirectory", "releaseUserNamespace"],
  },
];

describe("planTermination", () => {
  for (const { name, stage, pod: of = plain, observed: seenPod = observed(of), facts, want } of cases) {
    test(name, () => {
      const all = { observed: seenPod, graceSeconds: 30, isWanted: true, keepLogs: false, ...facts };
      assert.deepEqual(planTermination(stage, of, all).map(brief), want);
    });
  }
});

describe("graceFor", () => {
  const spec = { ...plain, spec: { ...plain.spec, terminationGracePeriodSeconds: 60 } };
  const deleted = { ...spec, metadata: { ...spec.metadata, deletionGracePeriodSeconds: 4 } };
  const probe = { terminationGracePeriodSeconds: 9 };
  const container = { annotations: grace(90) };
  const recordedDeletion = { annotations: { ...grace(90), [POD_DELETION_GRACE_PERIOD_ANNOTATION]: "8" } };
  const table = [
    { name: "30 seconds by default", got: graceFor(plain), want: 30 },
    { name: "the pod's own", got: graceFor(spec), want: 60 },
    { name: "the probe's before the pod's", got: graceFor(spec, { probe }), want: 9 },
    { name: "the deletion's before all", got: graceFor(deleted, { probe, container }), want: 4 },
    { name: "the pod's before the recorded one", got: graceFor(spec, { container }), want: 60 },
    { name: "the recorded one of an orphaned pod", got: graceFor(orphan, { container }), want: 90 },
    { name: "the recorded one of its deletion", got: graceFor(orphan, { container: recordedDeletion }), want: 8 },
    {
      name: "a recorded one that is no number does not count",
      got: graceFor(orphan, { container: { annotations: { [POD_TERMINATION_GRACE_PERIOD_ANNOTATION]: "-1" } } }),
      want: 30,
    },
  ];
  for (const { name, got, want } of table) test(name, () => assert.equal(got, want));
});
