import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fieldIn, numberIn, readKernelFile, SharedReads } from "./kernel-file.ts";

test("a file of many records is read whole, though the kernel gives a page at a time", () => {
  const whole = readFileSync("/proc/self/maps", "latin1");
  assert.ok(whole.length > 8192, "it is longer than two pages");
  const read = readKernelFile("/proc/self/maps") ?? "";
  const last = (text: string): string | undefined => text.trimEnd().split("\n").at(-1);
  // A program with more maps than fit sees the buffer full.
  if (read.length < 64 * 1024) assert.equal(last(read), last(whole));
  assert.ok(read.length > Math.min(whole.length / 2, 64 * 1024 - 1));
});

test("what is longer than the buffer is cut, and what cannot be read is undefined", () => {
  const directory = mkdtempSync(join(tmpdir(), "kernel-file-"));
  try {
    writeFileSync(join(directory, "long"), "x".repeat(100_000));
    assert.equal(readKernelFile(join(directory, "long"))?.length, 64 * 1024);
    writeFileSync(join(directory, "empty"), "");
    assert.equal(readKernelFile(join(directory, "empty")), "");
    writeFileSync(join(directory, "page"), "y".repeat(4096));
    assert.equal(readKernelFile(join(directory, "page"))?.length, 4096);
    assert.equal(readKernelFile(join(directory, "absent")), undefined);
    assert.equal(readKernelFile(directory), undefined);
    writeFileSync(join(directory, "number"), "42\n");
    writeFileSync(join(directory, "max"), "max\n");
    assert.deepEqual([numberIn(join(directory, "number")), numberIn(join(directory, "max"))], [42, undefined]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a number, or none", () => {
  const texts: Readonly<Record<string, string>> = { one: "42\n", none: "max\n", empty: "", minus: "-1\n", zero: "0\n" };
  const number = (name: string) => numberIn(name, (path) => texts[path]);
  assert.deepEqual(["one", "none", "empty", "minus", "zero", "gone"].map(number), [
    42,
    undefined,
    undefined,
    undefined,
    0,
    undefined,
  ]);
});

test("a field by its whole name, at the beginning of a line", () => {
  const text = "total_rss 5\nrss 7\nrss_huge 9\n";
  assert.deepEqual([fieldIn(text, "rss"), fieldIn(text, "total_rss"), fieldIn(text, "huge")], [7, 5, 0]);
});

test("shared reads see a file once until they are cleared, and one that is missing too", (context) => {
  const directory = mkdtempSync(join(tmpdir(), "kernel-file-"));
  context.after(() => rmSync(directory, { recursive: true }));
  const [file, late] = [join(directory, "a"), join(directory, "b")];
  writeFileSync(file, "1");
  const shared = new SharedReads();
  assert.deepEqual([shared.read(file), shared.read(late)], ["1", undefined]);
  writeFileSync(file, "2");
  writeFileSync(late, "3");
  assert.deepEqual([shared.read(file), shared.read(late)], ["1", undefined]);
  assert.equal(readKernelFile(file), "2");
  shared.clear();
  assert.deepEqual([shared.read(file), shared.read(late)], ["2", "3"]);
});
