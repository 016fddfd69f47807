import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { PodStatus, Volume } from "../../model/generated/types.ts";
import type { PodStep } from "../../model/step.ts";
import { startTimes } from "./start-times.ts";

const CREATED = Date.parse("2026-01-01T00:00:00Z");
const NOW = CREATED + 60_000;
const at = (seconds: number): number => CREATED + seconds * 1000;
const pull = (since: number, until?: number): PodStep => ({
  step: "pull",
  since: at(since),
  detail: "",
  ...(until === undefined ? {} : { until: at(until) }),
});
const init = (since: number, until: number): PodStatus => ({
  initContainerStatuses: [
    {
      name: "i",
      image: "i",
      imageID: "",
      ready: true,
      restartCount: 0,
      state: {
        terminated: {
          exitCode: 0,
          startedAt: new Date(at(since)).toISOString(),
          finishedAt: new Date(at(until)).toISOString(),
        },
      },
    },
  ],
});

const cases: readonly {
  name: string;
  steps?: readonly PodStep[];
  status?: PodStatus;
  volumes?: readonly Volume[];
  want: { totalMs: number; sliMs?: number };
}[] = [
  { name: "nothing to leave out", want: { totalMs: 60_000, sliMs: 60_000 } },
  { name: "a pull is left out", steps: [pull(10, 30)], want: { totalMs: 60_000, sliMs: 40_000 } },
  { name: "pulls at once count once", steps: [pull(10, 30), pull(20, 35)], want: { totalMs: 60_000, sliMs: 35_000 } },
  { name: "pulls with a gap", steps: [pull(30, 35), pull(10, 20)], want: { totalMs: 60_000, sliMs: 45_000 } },
  { name: "a pull that goes on is not one yet", steps: [pull(10)], want: { totalMs: 60_000, sliMs: 60_000 } },
  { name: "init containers are left out", status: init(5, 25), want: { totalMs: 60_000, sliMs: 40_000 } },
  {
    name: "a pull while an init container runs counts once",
    status: init(5, 25),
    steps: [pull(20, 30)],
    want: { totalMs: 60_000, sliMs: 35_000 },
  },
  {
    name: "a pod with volumes that the node makes counts",
    volumes: [{ name: "c", configMap: { name: "c" } }],
    want: { totalMs: 60_000, sliMs: 60_000 },
  },
  {
    name: "a pod that waits for storage is left out of the promise",
    volumes: [{ name: "v", persistentVolumeClaim: { claimName: "v" } }],
    want: { totalMs: 60_000 },
  },
];

for (const { name, steps = [], status = {}, volumes = [], want } of cases) {
  test(`how long a start took: ${name}`, () => {
    const made = pod("web")
      .container("app")
      .with({ volumes: [...volumes] })
      .build();
    const created = { ...made, metadata: { ...made.metadata, creationTimestamp: "2026-01-01T00:00:00Z" } };
    assert.deepEqual(startTimes(created, { status, steps, now: NOW }), want);
  });
}

test("a static pod has no time of creation", () => {
  assert.equal(startTimes(pod("web").container("app").build(), { status: {}, steps: [], now: NOW }), undefined);
});
