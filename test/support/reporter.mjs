// The reporter of test/run.ts: failures with their place and cause, then the counts. Quiet about what passes.
// Plain JavaScript, because node loads reporters by itself, without tsx.
import "./plain-assert.mjs";
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

/** The suite of a test file, named by its place in the list: see test/run.ts. */
const FILE_MARK = "·";

/** A test that passed, failed or was skipped: counted for the file whose suite is running. */
function note(data, seen) {
  // Some releases of Node tell of tests that nobody asked for.
  if (data.skip === "test name does not match pattern") return;
  if (data.skip === undefined && data.todo === undefined) seen.executed++;
  else {
    const reason = [data.skip, data.todo].find((text) => typeof text === "string" && text !== "") ?? "no reason given";
    seen.skipped.push({ test: data.name, reason });
  }
}

/** The end of a file's suite: what was seen since the one before it is the file's. */
function endFile(data, seen) {
  const file = state.files[Number(data.name.slice(FILE_MARK.length))];
  if (file !== undefined) {
    state.executed.set(file, seen.executed);
    state.tookMs.set(file, data.details?.duration_ms ?? 0);
    state.skipped.push(...seen.skipped.map((skipped) => ({ file, ...skipped })));
  }
  return { executed: 0, skipped: [] };
}

// oxlint-disable-next-line import/no-default-export -- the way node finds a reporter
export default async function* report(events) {
  let seen = { executed: 0, skipped: [] };
  for await (const { type, data } of events) {
    state.lastEvent = performance.now();
    if (type === "test:dequeue") state.running = `${data.name}${place(data)}`;
    const isSuite = data?.details?.type === "suite";
    const isEnd = type === "test:pass" || type === "test:fail";
    const isFile = isEnd && data.nesting === 0 && data.name.startsWith(FILE_MARK);
    if (isFile) seen = endFile(data, seen);
    else if (isEnd && (!isSuite || data.skip !== undefined)) note(data, seen);
    if (type === "test:pass") {
      if (isFile || data.skip !== undefined || data.todo !== undefined) continue;
      if (!isSuite) state.passed++;
      if (verbose && !isSuite) yield `✓ ${data.name}${place(data)}\n`;
    } else if (type === "test:fail") {
      if (data.todo !== undefined) continue;
      if (!isEcho(data)) {
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
