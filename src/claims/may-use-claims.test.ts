import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { mayUseClaims } from "./may-use-claims.ts";

describe("a pod", () => {
  const none = { isDesired: false, hasWorker: false, isObserved: false, isFinished: true };
  const cases = [
    { name: "that is not decided uses its claims", given: { isDesired: true, isFinished: false }, want: true },
    { name: "that runs uses its claims", given: { isDesired: true, hasWorker: true, isFinished: false }, want: true },
    { name: "that is being stopped uses its claims", given: { hasWorker: true, isFinished: false }, want: true },
    { name: "that only the runtime has uses its claims", given: { isObserved: true }, want: true },
    { name: "that was rejected uses none", given: { isDesired: true }, want: false },
    { name: "that ended uses none", given: { isDesired: true, hasWorker: true, isObserved: true }, want: false },
    { name: "that nobody has uses none", given: {}, want: false },
  ];
  for (const { name, given, want } of cases) {
    test(name, () => {
      const { isDesired, hasWorker, isObserved, isFinished } = { ...none, ...given };
      const found = (isFound: boolean) => () => (isFound ? {} : undefined);
      const ring = {
        desired: { get: found(isDesired) },
        observer: { get: found(isObserved) },
        pool: () => ({ worker: found(hasWorker), isFinished: () => isFinished }),
      };
      assert.equal(mayUseClaims("uid", ring), want);
    });
  }
});
