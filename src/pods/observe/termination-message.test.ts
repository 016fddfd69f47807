import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { seen } from "../../../test/support/pods.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import { type TailReader, terminationMessage } from "./termination-message.ts";

const PATH = "/dev/termination-log";
const LOG = "/logs/app/0.log";

/** Files by path; one that is an error cannot be read. */
function files(entries: Readonly<Record<string, string | Error>>): TailReader {
  return {
    readTail: (path, bytes) => {
      const entry = entries[path];
      if (entry instanceof Error) return Promise.reject(entry);
      return Promise.resolve(
        Buffer.from(entry ?? "")
          .subarray(-bytes)
          .toString("utf8"),
      );
    },
  };
}

function ended(more: Partial<ObservedContainer> & { policy?: string } = {}): ObservedContainer {
  const { policy = "File", ...rest } = more;
  return seen(
    { name: "app" },
    {
      state: "exited",
      exitCode: 1,
      reason: "Error",
      logPath: LOG,
      annotations: {
        "io.kubernetes.container.terminationMessagePath": PATH,
        "io.kubernetes.container.terminationMessagePolicy": policy,
      },
      mounts: [
        { containerPath: "/data", hostPath: "/volume" },
        { containerPath: PATH, hostPath: "/message" },
      ],
      ...rest,
    },
  );
}

function log(...lines: readonly string[]): string {
  return lines.map((line) => `2026-01-01T00:00:00.000000000Z stdout ${line}\n`).join("");
}

const fallback = { policy: "FallbackToLogsOnError" };

describe("what an ended container says", () => {
  const cases: { name: string; container: ObservedContainer; files: Record<string, string>; want: string }[] = [
    { name: "nothing", container: ended(), files: {}, want: "" },
    { name: "what it wrote to its file", container: ended(), files: { "/message": "bye" }, want: "bye" },
    { name: "the runtime's words", container: ended({ message: "OOM" }), files: {}, want: "OOM" },
    {
      name: "both, the runtime's first",
      container: ended({ message: "OOM" }),
      files: { "/message": "bye" },
      want: "OOM: bye",
    },
    {
      name: "the last 4096 bytes of its file",
      container: ended(),
      files: { "/message": `${"x".repeat(5000)}end` },
      want: `${"x".repeat(4093)}end`,
    },
    { name: "not its log, by default", container: ended(), files: { [LOG]: log("F boom") }, want: "" },
    {
      name: "its log, where that is the policy and it failed",
      container: ended(fallback),
      files: { [LOG]: log("F one", "F two") },
      want: "one\ntwo",
    },
    {
      name: "its file before its log",
      container: ended(fallback),
      files: { "/message": "bye", [LOG]: log("F boom") },
      want: "bye",
    },
    {
      name: "not its log after a success",
      container: ended({ ...fallback, exitCode: 0 }),
      files: { [LOG]: log("F fine") },
      want: "",
    },
    {
      name: "not its log when it never ran",
      container: ended({ ...fallback, reason: "ContainerCannotRun", message: "no such file" }),
      files: { [LOG]: log("F old") },
      want: "no such file",
    },
    {
      name: "nothing of a file when it has no path for one",
      container: ended({ annotations: {} }),
      files: { "/message": "bye" },
      want: "",
    },
    {
      name: "its own file, where a volume is mounted at the same path too",
      container: ended({
        mounts: [
          { containerPath: PATH, hostPath: "/volume" },
          { containerPath: PATH, hostPath: "/message" },
        ],
      }),
      files: { "/message": "bye", "/volume": "other" },
      want: "bye",
    },
  ];
  for (const { name, container, files: entries, want } of cases) {
    test(name, async () => assert.equal(await terminationMessage(files(entries), container), want));
  }

  test("that its file cannot be read, instead of failing", async () => {
    const broken = files({ "/message": new Error("EISDIR: illegal operation on a directory, read") });
    const message = await terminationMessage(broken, ended({ message: "OOM" }));
    assert.equal(message, "OOM: Error on reading termination log: EISDIR: illegal operation on a directory, read");
  });
});

describe("the end of a log", () => {
  const said = async (text: string): Promise<string> => terminationMessage(files({ [LOG]: text }), ended(fallback));

  test("is nothing of a file that a runtime did not write, unless it was cut off from its beginning", async () => {
    const header = "2026-01-01T00:00:00Z stdout F ";
    assert.equal(await said("A".repeat(700)), "");
    assert.equal(await said("A".repeat(8192)), "");
    assert.equal(await said(`${"A".repeat(700)}\n${log("F boom")}`), "boom");
    assert.equal(await said(`${header}${"A".repeat(9000)}`), "A".repeat(2048));
    assert.equal(await said(`${header}${"A".repeat(100)}\n${"B".repeat(8191)}\n`), "");
  });

  test("the last 80 lines", async () => {
    const lines = Array.from({ length: 100 }, (_, i) => `line ${i}`);
    assert.equal(await said(log(...lines.map((line) => `F ${line}`))), lines.slice(-80).join("\n"));
  });

  test("in 2048 bytes, which are fewer characters outside ASCII, and no half one", async () => {
    const message = await said(log(`F ${"é".repeat(1500)}`, "F x"));
    assert.equal(message, `${"é".repeat(1023)}\nx`);
    assert.ok(Buffer.byteLength(message) <= 2048);
  });

  test("pieces of one line are one line", async () => {
    assert.equal(await said(log("P one ", "P two ", "F three", "F four")), "one two three\nfour");
  });

  test("a last line without its end counts too", async () => {
    assert.equal(await said(log("F one", "P no end")), "one\nno end");
  });

  test("a line longer than what is read at all still gives its end", async () => {
    assert.equal(await said(log(`F ${"a".repeat(20_000)}end`)), `${"a".repeat(2045)}end`);
  });

  test("a cut first line shows nothing of the runtime's own prefix", async () => {
    const lines = Array.from({ length: 300 }, () => "F x");
    assert.equal(await said(log(...lines)), Array.from({ length: 80 }, () => "x").join("\n"));
    for (let cut = 0; cut < 42; cut++) {
      const pieces = Array.from({ length: 300 }, () => "P x");
      assert.match(await said(log(...pieces, `F ${"y".repeat(cut)}`)), /^x+y*$/);
    }
  });

  test("empty lines stay, and so do blanks", async () => {
    assert.equal(await said(log("F a", "F ", "F  b ")), "a\n\n b ");
  });

  test("a container without a log says nothing of it", async () => {
    assert.equal(await terminationMessage(files({}), ended({ ...fallback, logPath: "" })), "");
  });
});
