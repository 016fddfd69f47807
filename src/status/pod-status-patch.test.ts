import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContainerStatus, PodStatus } from "../model/generated/types.ts";
import { podStatusPatch, rememberSent, type ServerSide } from "./pod-status-patch.ts";

const container = (state: ContainerStatus["state"]): ContainerStatus => ({
  name: "web",
  image: "i",
  imageID: "",
  ready: true,
  restartCount: 0,
  lastState: {},
  resources: {},
  ...(state && { state }),
});
const since = "2026-01-01T00:00:00Z";
const running: PodStatus = {
  phase: "Running",
  startTime: since,
  podIP: "10.0.0.1",
  podIPs: [{ ip: "10.0.0.1" }],
  conditions: [{ type: "Ready", status: "True", lastTransitionTime: since }],
  containerStatuses: [container({ running: { startedAt: since } })],
};
const server = (status: PodStatus | undefined, last?: ServerSide["last"]): ServerSide => ({ status, last });

const cases: readonly { name: string; wanted: PodStatus; server: ServerSide; want: unknown }[] = [
  { name: "what the server has is not sent", wanted: running, server: server(running), want: undefined },
  {
    name: "what the server writes as null or leaves out is the same",
    wanted: running,
    server: server({
      ...running,
      // As the server answers: an absent time is null there.
      containerStatuses: [
        JSON.parse(JSON.stringify({ ...container({ running: { startedAt: since } }), user: null, lastState: {} })),
      ],
    }),
    want: undefined,
  },
  {
    name: "only what changed is sent",
    wanted: { ...running, phase: "Running", message: "m" },
    server: server(running),
    want: { message: "m" },
  },
  {
    name: "what is no longer said is taken back",
    wanted: running,
    server: server({ ...running, reason: "Old" }),
    want: { reason: null },
  },
  {
    name: "another address replaces the old one",
    wanted: { ...running, podIP: "10.0.0.2", podIPs: [{ ip: "10.0.0.2" }] },
    server: server(running),
    want: { podIP: "10.0.0.2", podIPs: [{ ip: "10.0.0.2" }, { $patch: "replace" }] },
  },
  {
    name: "the addresses of a pod that is rejected after it ran are removed together",
    wanted: { phase: "Failed", reason: "UnexpectedAdmissionError", conditions: [] },
    server: server({ ...running, hostIP: "192.0.2.1", hostIPs: [{ ip: "192.0.2.1" }] }),
    want: {
      phase: "Failed",
      reason: "UnexpectedAdmissionError",
      podIP: null,
      podIPs: null,
      hostIP: null,
      hostIPs: null,
      conditions: [{ $patch: "delete", type: "Ready" }],
    },
  },
  {
    name: "a start time is never changed",
    wanted: { ...running, startTime: "2026-01-01T00:00:09Z" },
    server: server(running),
    want: undefined,
  },
  {
    name: "a condition that says the same keeps the server's time",
    wanted: { ...running, conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-02-02T00:00:00Z" }] },
    server: server(running),
    want: undefined,
  },
  {
    name: "conditions of others are not touched, our own that are gone are removed",
    wanted: running,
    server: server({
      ...running,
      conditions: [
        ...(running.conditions ?? []),
        { type: "example.com/theirs", status: "True" },
        { type: "PodResizePending", status: "True" },
      ],
    }),
    want: { conditions: [{ $patch: "delete", type: "PodResizePending" }] },
  },
  {
    name: "a final phase is held back while a container runs",
    wanted: { ...running, phase: "Failed", reason: "DeadlineExceeded" },
    server: server(running),
    want: undefined,
  },
  {
    name: "a final phase is held back while an ephemeral container runs",
    wanted: {
      ...running,
      phase: "Failed",
      containerStatuses: [container({ terminated: { exitCode: 1 } })],
      ephemeralContainerStatuses: [container({ running: {} })],
    },
    server: server({
      ...running,
      containerStatuses: [container({ terminated: { exitCode: 1 } })],
      ephemeralContainerStatuses: [container({ running: {} })],
    }),
    want: undefined,
  },
  {
    name: "a final phase is told once all have ended",
    wanted: {
      ...running,
      phase: "Failed",
      reason: "Evicted",
      containerStatuses: [container({ terminated: { exitCode: 1 } })],
    },
    server: server({ ...running, containerStatuses: [container({ terminated: { exitCode: 1 } })] }),
    want: { phase: "Failed", reason: "Evicted" },
  },
  {
    name: "a field that the server dropped is not sent for ever",
    wanted: { ...running, observedGeneration: 3 },
    server: server(running, { sent: { ...running, observedGeneration: 3 }, answer: running }),
    want: undefined,
  },
  {
    name: "a dropped field that changes is tried again",
    wanted: { ...running, observedGeneration: 4 },
    server: server(running, { sent: { ...running, observedGeneration: 3 }, answer: running }),
    want: { observedGeneration: 4 },
  },
  {
    name: "a reason that no longer holds is taken back: the server merges conditions field by field",
    wanted: running,
    server: server({
      ...running,
      conditions: [{ type: "Ready", status: "False", reason: "ContainersNotReady", message: "unready: [web]" }],
    }),
    want: {
      conditions: [{ type: "Ready", status: "True", lastTransitionTime: since, reason: null, message: null }],
    },
  },
  {
    name: "what somebody else overwrote is put right",
    wanted: running,
    server: server({ ...running, phase: "Pending" }, { sent: running, answer: running }),
    want: { phase: "Running" },
  },
];
for (const { name, wanted, server: side, want } of cases) {
  test(`pod status patch: ${name}`, () => assert.deepEqual(podStatusPatch(wanted, side), want));
}

test("what somebody else changed while another field was sent is put right, too", () => {
  const restarted = { ...running, containerStatuses: [{ ...container({}), restartCount: 1 }] };
  const patch = podStatusPatch(restarted, server(running)) ?? {};
  assert.deepEqual(Object.keys(patch), ["containerStatuses"]);
  const theirs: PodStatus = { ...restarted, conditions: [{ type: "Ready", status: "False" }] };
  const last = rememberSent(patch, { status: restarted, answer: theirs, last: undefined });
  const next = podStatusPatch(restarted, server(theirs, last));
  assert.deepEqual(next, { conditions: running.conditions });
});

test("what the server dropped of one patch is still known after the next", () => {
  const wanted = { ...running, observedGeneration: 3 };
  const first = rememberSent({ observedGeneration: 3 }, { status: wanted, answer: running, last: undefined });
  const later = { ...wanted, message: "m" };
  const answer = { ...running, message: "m" };
  const patch = podStatusPatch(later, server(running, first)) ?? {};
  assert.deepEqual(patch, { message: "m" });
  const second = rememberSent(patch, { status: later, answer, last: first });
  assert.equal(podStatusPatch(later, server(answer, second)), undefined);
});
