import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { emptyPool } from "./shared-pool.ts";

const SIDECAR = { restartPolicy: "Always" };
const LEFT =
  "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers";
const EARLY = "pod rejected, pod has shared init containers but no cpus available for them";

/** Containers whose name ends in a number have so many CPUs for themselves. */
function of({ name }: Container): ReadonlyMap<string, number> {
  const count = Number(/\d+$/.exec(name)?.[0] ?? 0);
  return new Map(count === 0 ? [] : [["cpu", count]]);
}

const cases: readonly { name: string; pod: Pod; want: string | undefined }[] = [
  { name: "of which something is left", pod: pod().container("app3").container("log").build(), want: undefined },
  { name: "of which nothing is left", pod: pod().container("app4").container("log").build(), want: LEFT },
  { name: "of which nothing has to be left", pod: pod().container("app4").build(), want: undefined },
  {
    name: "that a sidecar shares before another that does not",
    pod: pod().init("proxy", SIDECAR).init("agent2", SIDECAR).container("app2").build(),
    want: LEFT,
  },
  {
    name: "that only sidecars take",
    pod: pod().init("agent2", SIDECAR).init("proxy2", SIDECAR).init("setup").container("app").build(),
    want: EARLY,
  },
  {
    name: "that an init container shares before the sidecars that take it",
    pod: pod().init("setup").init("agent4", SIDECAR).build(),
    want: undefined,
  },
  {
    name: "that an init container has for itself while it runs",
    pod: pod().init("setup4").container("app").build(),
    want: undefined,
  },
];

describe("the four CPUs of a pod", () => {
  for (const { name, pod: each, want } of cases) {
    const result = want === undefined ? "are enough" : "are not enough";
    test(`${name}: ${result}`, () => assert.equal(emptyPool(each, { total: new Map([["cpu", 4]]), of }), want));
  }
});
