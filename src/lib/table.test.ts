import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytesWords, displayWidth, printable, table } from "./table.ts";

test("columns are aligned and lines carry no blanks at their end", () => {
  const rows = [
    ["web", "Running", "10.0.0.1"],
    ["a-long-name", "", ""],
    ["日本", { text: "Failed", style: "red" as const }, "x"],
  ];
  assert.equal(
    table(rows, { header: ["NAME", "STATE", "IP"] }),
    [
      "NAME          STATE     IP",
      "web           Running   10.0.0.1",
      "a-long-name",
      "日本          Failed    x",
      "",
    ].join("\n"),
  );
});

test("colour is there only when asked for, and does not disturb the columns", () => {
  const rows = [
    [{ text: "no", style: "red" as const }, "x"],
    ["fine", "y"],
  ];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour is made of them
  const plain = (text: string): string => text.replace(/\u001b\[\d+m/g, "");
  const coloured = table(rows, { color: true });
  assert.notEqual(coloured, table(rows));
  assert.equal(plain(coloured), table(rows));
});

test("a cell cannot move the cursor or begin a new row", () => {
  const text = table([["a\u001b[2J\nb", "c"]]);
  assert.equal(text, "a\ufffd[2J\ufffdb   c\n");
});

test("text cannot reorder its row by bidirectional controls; right-to-left letters and joined emoji stay", () => {
  for (const control of "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\u0000\u007f\u0085") {
    assert.equal(printable(`a${control}b`), "a\ufffdb", control.codePointAt(0)?.toString(16));
  }
  for (const text of ["שלום", "سلام", "👩\u200d🚀", "é\u00a0a\u00ad"]) assert.equal(printable(text), text);
  assert.equal(table([["a\u202eb", "c"]]), "a\ufffdb   c\n");
});

test("width counts what a terminal shows", () => {
  assert.deepEqual(["abc", "é", "e\u0301", "漢字", "🚀"].map(displayWidth), [3, 1, 1, 4, 2]);
});

const cases: [number, string][] = [
  [0, "0ms"],
  [640.4, "640ms"],
  [999.9, "999ms"],
  [5_900, "5s"],
  [60_000, "1m"],
  [192_000, "3m12s"],
  [7_500_000, "2h5m"],
  [273_600_000, "3d4h"],
  [-5_000, "-5s"],
  [Number.NaN, "?"],
];
for (const [ms, want] of cases) test(`${ms} ms are ${want}`, () => assert.equal(ago(ms), want));

test("bytes for people", () => {
  const rows: [number, string][] = [
    [0, "0"],
    [1023, "1023"],
    [1024, "1.0Ki"],
    [9.97 * 1024, "10Ki"],
    [1023.6 * 1024, "1.0Mi"],
    [5 * 2 ** 20 + 2 ** 19, "5.5Mi"],
    [100 * 2 ** 30, "100Gi"],
    [3000 * 2 ** 50, "3000Pi"],
  ];
  for (const [bytes, words] of rows) assert.equal(bytesWords(bytes), words);
});
