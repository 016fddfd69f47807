// The reporter of test/run.ts: failures with their place and cause, then the counts. Quiet about what passes.
// Plain JavaScript, because node loads reporters by itself, without tsx.
import { relative } from "node:path";
import { inspect } from "node:util";

const state = globalThis[Symbol.for("kubelet.tests")];
const verbose = process.env.KUBELET_TEST_VERBOSE === "1";

/** The error a test threw, without node:test's wrapping. */
function causeOf(error) {
  const inner = error?.code === "ERR_TEST_FAILURE" && error.cause !== undefined ? error.cause : error;
  return typeof inner === "string" ? inner : inspect(inner, { depth: 6, maxArrayLength: 50, maxStringLength: 4000 });
}

/** The file only: tsx puts a file on one line, so node's line number says nothing. The stack has the right one. */
const place = ({ file }) => (file === undefined ? "" : ` (${relative(process.cwd(), file)})`);
const indent = (text) => text.replace(/^/gm, "    ");

/** A failed suite only repeats what its failed tests said. */
const isEcho = (data) => data.details?.error?.failureType === "subtestsFailed";

// oxlint-disable-next-line import/no-default-export -- the way node finds a reporter
export default async function* report(events) {
  for await (const { type, data } of events) {
    state.lastEvent = performance.now();
    if (type === "test:dequeue") state.running = `${data.name}${place(data)}`;
    if (data?.file !== undefined && (type === "test:pass" || type === "test:fail")) state.reported.add(data.file);
    const isSuite = data?.details?.type === "suite";
    if (type === "test:pass") {
      if (data.skip !== undefined || data.todo !== undefined) state.skipped++;
      else if (!isSuite) state.passed++;
      if (verbose && !isSuite) yield `✓ ${data.name}${place(data)}\n`;
    } else if (type === "test:fail") {
      if (data.todo !== undefined) state.skipped++;
      else if (!isEcho(data)) {
        state.failed++;
        yield `✗ ${data.name}${place(data)}\n${indent(causeOf(data.details?.error))}\n`;
      } else if (!isSuite) state.failed++;
    } else if (
      type === "test:diagnostic" &&
      /asynchronous activity|unhandledRejection|uncaughtException/.test(data.message)
    ) {
      // A promise that failed after its test had ended: node:test only mentions it, here it counts.
      state.failed++;
      yield `✗ ${data.message}\n`;
    }
  }
}
