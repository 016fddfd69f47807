import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import type { Container, Pod, PodStatus } from "../../model/generated/types.ts";
import type { ContainerProbes } from "../../model/probe.ts";
import { derivePodStatus } from "./derive.ts";
import { withProbeFlags } from "./derive-flags.ts";

const probe = { exec: { command: ["x"] } };
const app = { name: "app", image: "app:1" };
const NOW = Date.UTC(2026, 0, 1);

function results(more: Partial<ContainerProbes>): ReadonlyMap<string, ContainerProbes> {
  const none = { started: undefined, ready: undefined, liveness: undefined, startup: undefined };
  return new Map([["app", { containerId: "app-0", ...none, ...more }]]);
}

function derive(of: Pod, probes = results({}), state: "running" | "exited" | "created" = "running"): PodStatus {
  return derivePodStatus({
    pod: of,
    observed: observed(of, [sandbox()], [seen(app, { state })]),
    previous: undefined,
    probes,
    waiting: new Map(),
    runtimeName: "containerd",
    hostIps: ["192.0.2.1"],
    now: NOW,
    terminating: false,
    finished: false,
  });
}

function flags(status: PodStatus): string {
  const [container] = status.containerStatuses ?? [];
  const ready = status.conditions?.find(({ type }) => type === "Ready")?.status;
  return `${container?.started === true ? "started" : "not started"}, ${container?.ready === true ? "ready" : "not ready"}, Ready=${ready}`;
}

const cases: {
  name: string;
  container: Partial<Container>;
  probes: Partial<ContainerProbes>;
  state?: "exited" | "created";
  want: string;
}[] = [
  { name: "without probes a running container is both", container: {}, probes: {}, want: "started, ready, Ready=True" },
  {
    name: "a readiness probe that has not succeeded",
    container: { readinessProbe: probe },
    probes: { ready: false },
    want: "started, not ready, Ready=False",
  },
  {
    name: "a readiness probe that has",
    container: { readinessProbe: probe },
    probes: { ready: true },
    want: "started, ready, Ready=True",
  },
  {
    name: "a startup probe that has not succeeded holds back both",
    container: { startupProbe: probe },
    probes: { started: false, startup: "unknown" },
    want: "not started, not ready, Ready=False",
  },
  {
    name: "a startup probe that has",
    container: { startupProbe: probe },
    probes: { started: true, startup: "success" },
    want: "started, ready, Ready=True",
  },
  {
    name: "results of an earlier instance say nothing",
    container: { startupProbe: probe, readinessProbe: probe },
    probes: { containerId: "earlier", started: true, ready: true },
    want: "not started, not ready, Ready=False",
  },
  {
    name: "an id that only ends alike is another instance",
    container: { readinessProbe: probe },
    probes: { containerId: "-0", ready: true },
    want: "started, not ready, Ready=False",
  },
  {
    name: "an ended container is neither, whatever its probes said",
    container: { readinessProbe: probe },
    probes: { ready: true },
    state: "exited",
    want: "not started, not ready, Ready=False",
  },
  {
    name: "a failed liveness probe alone changes no flag",
    container: { livenessProbe: probe },
    probes: { liveness: "failure" },
    want: "started, ready, Ready=True",
  },
];

describe("ready and started", () => {
  for (const { name, container, probes, state, want } of cases) {
    test(name, () =>
      assert.equal(flags(derive(pod().container("app", container).build(), results(probes), state)), want),
    );
  }
});

describe("a result that comes between two statuses", () => {
  const own = pod().container("app", { readinessProbe: probe }).build();
  const before = derive(own, results({ ready: false }));
  const later = NOW + 5000;

  test("changes the flag and both conditions, with the time, and nothing else", () => {
    const after = withProbeFlags(before, { pod: own, probes: results({ ready: true }), now: later });
    assert.equal(flags(after), "started, ready, Ready=True");
    assert.deepEqual(
      after.conditions?.filter((one, index) => one !== before.conditions?.[index]).map(({ type }) => type),
      ["Ready", "ContainersReady"],
    );
    assert.equal(after.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime, "2026-01-01T00:00:05Z");
    assert.deepEqual(
      { ...after, conditions: [], containerStatuses: [] },
      { ...before, conditions: [], containerStatuses: [] },
    );
  });

  test("is what a whole new status would say", () => {
    const after = withProbeFlags(before, { pod: own, probes: results({ ready: true }), now: NOW });
    assert.deepEqual(after, derive(own, results({ ready: true })));
  });

  test("that changes nothing leaves the very same status", () => {
    assert.equal(withProbeFlags(before, { pod: own, probes: results({ ready: false }), now: later }), before);
  });

  test("of a container that the status does not show as running changes nothing", () => {
    const ended = derive(own, results({ ready: false }), "exited");
    assert.equal(withProbeFlags(ended, { pod: own, probes: results({ ready: true }), now: later }), ended);
  });
});
