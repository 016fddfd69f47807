import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { type Acting, mustInterrupt, type WantedNow } from "./interrupt.ts";

const before = pod().container("app").container("side").build();
const changed = pod().container("app", { image: "app:2" }).container("side").build();
const start = (name: string): Acting => ({
  pod: before,
  action: { do: "startContainer", start: { name, kind: "regular", attempt: 0 } },
});
const stopping: Acting = { pod: before, action: { do: "stopPod", why: "" }, graceSeconds: 30 };
const stop = (graceSeconds: number): WantedNow => ({ pod: before, stop: { graceSeconds } });

const cases: { name: string; wanted: WantedNow; acting: Acting; want: boolean }[] = [
  { name: "nothing changed: go on", wanted: { pod: before, stop: undefined }, acting: start("app"), want: false },
  {
    name: "the image of what is started changed",
    wanted: { pod: changed, stop: undefined },
    acting: start("app"),
    want: true,
  },
  {
    name: "another container changed: go on",
    wanted: { pod: changed, stop: undefined },
    acting: start("side"),
    want: false,
  },
  { name: "the pod is to stop while it starts", wanted: stop(30), acting: start("app"), want: true },
  { name: "the pod already stops with this grace period", wanted: stop(30), acting: stopping, want: false },
  { name: "the grace period was shortened", wanted: stop(1), acting: stopping, want: true },
];
for (const c of cases) test(c.name, () => assert.equal(mustInterrupt(c.wanted, c.acting), c.want));
