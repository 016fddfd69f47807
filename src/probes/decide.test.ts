import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ProbeKind } from "../model/probe.ts";
import {
  adopt,
  afterRun,
  nextRun,
  observe,
  type ProbeRules,
  type ProbeState,
  type RunOutcome,
  trigger,
} from "./decide.ts";

const WALL = 1_000_000;

function rules(kind: ProbeKind, more: Partial<ProbeRules> = {}): ProbeRules {
  const timing = { periodMs: 10_000, initialDelayMs: 0, successThreshold: 1, failureThreshold: 3 };
  return { kind, ...timing, upstreamTiming: false, ...more };
}

interface Life {
  readonly rules: ProbeRules;
  /** What a run answers that begins at this time (milliseconds since the container's start). */
  readonly answer: (at: number) => RunOutcome;
  readonly untilMs: number;
  readonly tookMs?: number;
  readonly carried?: boolean;
  readonly jitterMs?: number;
  /** When the startup probe is done. */
  readonly startedMs?: number;
  /** Times at which a status of the container is made. */
  readonly triggerAt?: readonly number[];
  /** When the agent first sees it. */
  readonly seenMs?: number;
}

/** Lets a container live and writes down each run (`time` or `time extra`) and each change of the result. */
function live(life: Life): { runs: string[]; results: string[] } {
  const { rules: own, tookMs = 0 } = life;
  const seenMs = life.seenMs ?? 0;
  const gateMs = own.kind === "startup" ? seenMs : Math.max(seenMs, life.startedMs ?? 0);
  const observation = (at: number, started: boolean) => ({
    ...({ state: "running", startedAt: WALL, started, now: { wall: WALL + at, mono: at } } as const),
    tickBase: 0,
    jitterMs: life.jitterMs ?? 0,
  });
  let state: ProbeState = adopt(own, "c1", life.carried === true);
  const runs: string[] = [];
  const results = [state.result as string];
  state = observe(own, state, observation(seenMs, own.kind !== "startup" && gateMs <= seenMs));
  if (gateMs > seenMs) {
    assert.equal(nextRun(state), undefined, "nothing runs before the startup probe is done");
    state = observe(own, state, observation(gateMs, true));
  }
  const triggers = [...(life.triggerAt ?? [])];
  for (;;) {
    const next = nextRun(state);
    const [first] = triggers;
    if (first !== undefined && (next === undefined || first <= next.at)) {
      triggers.shift();
      state = trigger(own, state, first);
      continue;
    }
    if (next === undefined || next.at > life.untilMs) return { runs, results };
    runs.push(`${next.at}${next.round === "extra" ? " extra" : ""}`);
    const run = { round: next.round, outcome: life.answer(next.at), startedAt: next.at, endedAt: next.at + tookMs };
    state = afterRun(own, state, run);
    if (state.result !== results.at(-1)?.split(" ")[0]) results.push(`${state.result} ${next.at + tookMs}`);
    assert.ok(runs.length < 500, "an end");
  }
}

const always = (outcome: RunOutcome) => () => outcome;
const successFrom = (ms: number) => (at: number) => (at >= ms ? "success" : "failure");
const failureFrom = (ms: number) => (at: number) => (at >= ms ? "failure" : "success");

const resultCases: { name: string; life: Life; want: string[] }[] = [
  {
    name: "startup begins unknown and is decided by the first success",
    life: { rules: rules("startup"), answer: always("success"), untilMs: 60_000 },
    want: ["unknown", "success 0"],
  },
  {
    name: "startup fails after threshold × period, not sooner",
    life: { rules: rules("startup", { failureThreshold: 60 }), answer: always("failure"), untilMs: 900_000 },
    want: ["unknown", "failure 600000"],
  },
  {
    name: "startup: the initial delay comes before threshold × period",
    life: { rules: rules("startup", { initialDelayMs: 5000 }), answer: always("failure"), untilMs: 900_000 },
    want: ["unknown", "failure 35000"],
  },
  {
    name: "startup: success in an extra round counts at once",
    life: { rules: rules("startup"), answer: successFrom(2500), untilMs: 60_000 },
    want: ["unknown", "success 3000"],
  },
  {
    name: "startup with the timing of Kubernetes: success is seen at the next tick",
    life: { rules: rules("startup", { upstreamTiming: true }), answer: successFrom(2500), untilMs: 60_000 },
    want: ["unknown", "success 10000"],
  },
  {
    name: "liveness begins as success",
    life: { rules: rules("liveness"), answer: always("success"), untilMs: 60_000 },
    want: ["success"],
  },
  {
    name: "liveness fails after threshold × period",
    life: { rules: rules("liveness"), answer: always("failure"), untilMs: 60_000 },
    want: ["success", "failure 30000"],
  },
  {
    name: "liveness counts only failures in a row",
    life: {
      rules: rules("liveness"),
      untilMs: 100_000,
      answer: (at) => (at === 30_000 || at === 60_000 ? "success" : "failure"),
    },
    want: ["success", "failure 90000"],
  },
  {
    name: "liveness with threshold 1 fails with the first failure",
    life: { rules: rules("liveness", { failureThreshold: 1 }), answer: failureFrom(15_000), untilMs: 60_000 },
    want: ["success", "failure 20000"],
  },
  {
    name: "readiness begins as failure and is ready with the first success",
    life: { rules: rules("readiness"), answer: always("success"), untilMs: 5000 },
    want: ["failure", "success 0"],
  },
  {
    name: "readiness waits for the initial delay",
    life: { rules: rules("readiness", { initialDelayMs: 7000 }), answer: always("success"), untilMs: 20_000 },
    want: ["failure", "success 7000"],
  },
  {
    name: "readiness: a delay that is over when the agent first sees the container is over",
    life: {
      rules: rules("readiness", { initialDelayMs: 7000 }),
      answer: always("success"),
      untilMs: 20_000,
      seenMs: 9000,
    },
    want: ["failure", "success 9000"],
  },
  {
    name: "readiness needs three periods for a success threshold of 3, however soon the first comes",
    life: { rules: rules("readiness", { successThreshold: 3 }), answer: always("success"), untilMs: 60_000 },
    want: ["failure", "success 20000"],
  },
  {
    name: "a status that is made meanwhile does not speed up a success threshold",
    life: {
      rules: rules("readiness", { successThreshold: 3 }),
      answer: always("success"),
      untilMs: 60_000,
      triggerAt: [1000, 2000, 3000, 11_000],
    },
    want: ["failure", "success 20000"],
  },
  {
    name: "readiness is lost after as many failures as the threshold says, and comes back",
    life: {
      rules: rules("readiness"),
      untilMs: 100_000,
      answer: (at) => (at >= 15_000 && at < 55_000 ? "failure" : "success"),
    },
    want: ["failure", "success 0", "failure 40000", "success 60000"],
  },
  {
    name: "a probe that cannot be made changes nothing",
    life: { rules: rules("liveness"), answer: always("error"), untilMs: 200_000 },
    want: ["success"],
  },
  {
    name: "errors do not break a row of failures",
    life: {
      rules: rules("liveness"),
      untilMs: 100_000,
      answer: (at) => (at === 20_000 ? "error" : "failure"),
    },
    want: ["success", "failure 40000"],
  },
  {
    name: "readiness waits for the startup probe and then runs at once",
    life: { rules: rules("readiness"), answer: always("success"), untilMs: 60_000, startedMs: 33_000 },
    want: ["failure", "success 33000"],
  },
  {
    name: "liveness waits for the startup probe, then threshold × period",
    life: { rules: rules("liveness"), answer: always("failure"), untilMs: 100_000, startedMs: 33_000 },
    want: ["success", "failure 63000"],
  },
  {
    name: "carried over: ready stays ready without a run",
    life: { rules: rules("readiness"), answer: always("success"), untilMs: 60_000, carried: true, jitterMs: 4000 },
    want: ["success"],
  },
  {
    name: "carried over: it still takes a row of failures to lose it",
    life: { rules: rules("readiness"), answer: always("failure"), untilMs: 60_000, carried: true, jitterMs: 4000 },
    want: ["success", "failure 24000"],
  },
  {
    name: "carried over: a startup probe that was done is never run again",
    life: { rules: rules("startup"), answer: always("failure"), untilMs: 900_000, carried: true },
    want: ["success"],
  },
];

describe("results", () => {
  for (const { name, life, want } of resultCases) test(name, () => assert.deepEqual(live(life).results, want));
});

const runCases: { name: string; life: Life; want: string[] }[] = [
  {
    name: "extra rounds at a tenth of the period, then less often the longer it takes",
    life: { rules: rules("readiness"), answer: always("failure"), untilMs: 15_000 },
    want: [
      ...["0 extra", "1000 extra", "2000 extra", "3000 extra", "4000 extra", "5000 extra", "6000 extra"],
      ...[
        "7000 extra",
        "8000 extra",
        "9000 extra",
        "10000",
        "11000 extra",
        "12100 extra",
        "13310 extra",
        "14641 extra",
      ],
    ],
  },
  {
    name: "extra rounds begin after the initial delay",
    life: { rules: rules("readiness", { initialDelayMs: 3000 }), answer: successFrom(4500), untilMs: 16_000 },
    want: ["3000 extra", "4000 extra", "5000 extra", "15000"],
  },
  {
    name: "after the first success the period begins anew and there are no more extra rounds",
    life: { rules: rules("readiness"), answer: (at) => (at === 2000 ? "success" : "failure"), untilMs: 33_000 },
    want: ["0 extra", "1000 extra", "2000 extra", "12000", "22000", "32000"],
  },
  {
    name: "liveness is never probed faster",
    life: { rules: rules("liveness", { failureThreshold: 10 }), answer: always("failure"), untilMs: 35_000 },
    want: ["10000", "20000", "30000"],
  },
  {
    name: "a run that takes longer than the period is followed by the next at once, never by two",
    life: {
      rules: rules("liveness", { failureThreshold: 9 }),
      answer: always("failure"),
      untilMs: 40_000,
      tookMs: 12_000,
    },
    want: ["10000", "22000", "34000"],
  },
  {
    name: "after liveness failed nothing runs until there is another container",
    life: { rules: rules("liveness", { failureThreshold: 1 }), answer: always("failure"), untilMs: 900_000 },
    want: ["10000"],
  },
  {
    name: "Kubernetes timing: ticks since the worker was made, whatever the delay",
    life: {
      rules: rules("liveness", { upstreamTiming: true, initialDelayMs: 15_000 }),
      answer: always("success"),
      untilMs: 45_000,
    },
    want: ["20000", "30000", "40000"],
  },
  {
    name: "Kubernetes timing: no extra rounds, but a status that is made asks at once and the period starts anew",
    life: {
      rules: rules("readiness", { upstreamTiming: true }),
      answer: successFrom(12_000),
      untilMs: 25_000,
      triggerAt: [3000, 12_500],
    },
    want: ["0", "3000", "12500", "22500"],
  },
  {
    name: "a status that is made asks a container that lost its readiness at once",
    life: {
      rules: rules("readiness", { failureThreshold: 1 }),
      answer: (at) => (at === 10_000 ? "failure" : "success"),
      untilMs: 25_000,
      triggerAt: [5000, 14_000],
    },
    want: ["0 extra", "10000", "14000", "24000"],
  },
  {
    name: "statuses that are made one after the other do not make rounds closer than a tenth of the period",
    life: {
      rules: rules("readiness"),
      answer: always("failure"),
      untilMs: 1500,
      triggerAt: [100, 200, 300, 400],
    },
    want: ["0 extra", "1000 extra"],
  },
  {
    name: "the jitter after a start of the agent delays what is known to be well",
    life: { rules: rules("liveness"), answer: always("success"), untilMs: 20_000, jitterMs: 4000 },
    want: ["4000", "14000"],
  },
  {
    name: "but what is not known to be ready is asked at once",
    life: { rules: rules("readiness"), answer: always("success"), untilMs: 5000, jitterMs: 4000 },
    want: ["0 extra"],
  },
];

describe("runs", () => {
  for (const { name, life, want } of runCases) test(name, () => assert.deepEqual(live(life).runs, want));

  test("extra rounds end by themselves: a container that is never ready costs what its period says", () => {
    const { runs } = live({ rules: rules("readiness"), answer: always("failure"), untilMs: 1_000_000 });
    assert.ok(runs.filter((run) => run.endsWith("extra")).length < 40);
    assert.equal(runs.filter((run) => !run.endsWith("extra")).length, 100);
  });
});

describe("containers that do not run", () => {
  const now = { wall: WALL, mono: 0 };
  const base = { startedAt: WALL, started: true, now, tickBase: 0, jitterMs: 0 };
  for (const kind of ["startup", "liveness", "readiness"] as const) {
    test(`${kind}: an ended container is a failure and is not probed`, () => {
      const after = observe(rules(kind), adopt(rules(kind), "c1", true), { ...base, state: "exited" });
      assert.deepEqual([after.result, nextRun(after)], ["failure", undefined]);
    });
    test(`${kind}: a container that is only created waits with its first result`, () => {
      const before = adopt(rules(kind), "c1", false);
      const after = observe(rules(kind), before, { ...base, started: false, state: "created" });
      assert.deepEqual([after.result, nextRun(after)], [before.result, undefined]);
    });
  }
});
