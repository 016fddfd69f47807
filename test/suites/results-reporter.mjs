// Appends a line of JSON for each test that ended to the file that KUBELET_TEST_RESULTS names. Processes that a suite starts
// to test in (a mount namespace of its own) append to the same file. Plain JavaScript: node loads reporters without tsx.
import "../support/plain-assert.mjs";
import { appendFileSync } from "node:fs";

// oxlint-disable-next-line import/no-default-export -- the way node finds a reporter
export default async function* report(events) {
  const file = process.env.KUBELET_TEST_RESULTS ?? "";
  for await (const { type, data } of events) {
    if (file === "" || (type !== "test:pass" && type !== "test:fail")) continue;
    const isSuite = data.details?.type === "suite";
    const left = data.skip ?? data.todo;
    // Some releases of Node tell of tests that nobody asked for.
    if (left === "test name does not match pattern") continue;
    if (isSuite && left === undefined) continue;
    const skipped = left === undefined ? undefined : left === true || left === "" ? "no reason given" : left;
    appendFileSync(file, `${JSON.stringify({ test: data.name, passed: type === "test:pass", skipped })}\n`);
  }
  yield "";
}
