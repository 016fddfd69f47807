import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { csiError } from "./csi-error.ts";

describe("what a driver answers to a call that fails", () => {
  // Number of the code, its name, final, infeasible: the lists of Kubernetes.
  const cases: [number, string, boolean, boolean][] = [
    [1, "Canceled", false, false],
    [2, "Unknown", true, false],
    [3, "InvalidArgument", true, true],
    [4, "DeadlineExceeded", false, false],
    [5, "NotFound", true, true],
    [6, "AlreadyExists", true, false],
    [7, "PermissionDenied", true, false],
    [8, "ResourceExhausted", false, false],
    [9, "FailedPrecondition", true, false],
    [10, "Aborted", false, false],
    [11, "OutOfRange", true, true],
    [12, "Unimplemented", true, false],
    [13, "Internal", true, false],
    [14, "Unavailable", false, false],
    [15, "DataLoss", true, false],
    [16, "Unauthenticated", true, false],
    [99, "Unknown", true, false],
  ];
  for (const [code, name, isFinal, isInfeasible] of cases) {
    const fate = isFinal ? "is final" : "leaves it open whether the driver is still at work";
    test(`${code} is ${name} and ${fate}${isInfeasible ? ", and infeasible" : ""}`, () => {
      const error = csiError({ code, details: "no room" });
      assert.equal(error.message, `rpc error: code = ${name} desc = no room`);
      assert.deepEqual([error.code, error.isFinal, error.isInfeasible], [name, isFinal, isInfeasible]);
    });
  }
});
