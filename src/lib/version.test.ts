import assert from "node:assert/strict";
import { test } from "node:test";
import { gitVersion, reportedVersion } from "./version.ts";

test("only a version changes what the agent calls itself", () => {
  assert.equal(reportedVersion("v1.36.3-mine"), "v1.36.3-mine");
  for (const word of ["false", "true", "raw", ""]) assert.equal(reportedVersion(word), gitVersion);
});
