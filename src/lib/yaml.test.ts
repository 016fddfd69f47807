import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeClock } from "./clock.ts";
import { parseDocuments, YamlError } from "./yaml.ts";

// Its time never passes: a machine under load would exceed the time limit of a thread.
const clock = new FakeClock();
const { signal } = new AbortController();
const parse = (text: string): ReturnType<typeof parseDocuments> => parseDocuments(text, { signal, clock });
const only = async (text: string): Promise<unknown> => (await parse(text)).documents[0]?.value;
const code = async (text: string): Promise<string> => {
  const error = await parse(text).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof YamlError, `no YamlError but ${String(error)}`);
  return error.code;
};

const scalars: [string, unknown][] = [
  ["0644", 420],
  ["0o644", 420],
  ["-0o10", -8],
  ["0x1f", 31],
  ["0b11", 3],
  ["1_000", 1000],
  ["22:22", "22:22"],
  ["1:30.5", "1:30.5"],
  ["no", false],
  ["Yes", true],
  ["on", true],
  ["'no'", "no"],
  ["~", null],
  ["2026-11-15", "2026-11-15"],
  ["2026-11-15T21:10:20Z", "2026-11-15T21:10:20Z"],
  ["1e3", 1000],
  [".5", 0.5],
  ["1.36", 1.36],
  ["100m", "100m"],
  ["0o9", "0o9"],
  ["<<", "<<"],
];
for (const [text, want] of scalars) {
  test(`${text} is ${JSON.stringify(want)}, as in Kubernetes`, async () => {
    assert.deepEqual(await only(`a: ${text}`), { a: want });
  });
}

test("anchors and merge keys work", async () => {
  const text = "base: &b {a: 1, c: 2}\nuse:\n  <<: *b\n  c: 3\nagain: *b\n";
  assert.deepEqual(await only(text), { base: { a: 1, c: 2 }, use: { a: 1, c: 3 }, again: { a: 1, c: 2 } });
});

test("several documents carry their lines, and empty ones are left out", async () => {
  const { documents } = await parse("# head\n---\na: 1\n---\n---\n# nothing\n---\n\nb: 2\n...\n");
  assert.deepEqual(documents, [
    { value: { a: 1 }, line: 3 },
    { value: { b: 2 }, line: 9 },
  ]);
});

for (const text of ["", "\n\n", "# only a comment\n", "---\n", "\ufeff"]) {
  test(`${JSON.stringify(text)} has no document`, async () => {
    assert.deepEqual(await parse(text), { documents: [], warnings: [] });
  });
}

test("JSON is JSON, also with a byte order mark, and a bracket that is YAML is YAML", async () => {
  assert.deepEqual((await parse('\ufeff\n {"a": [1, "no"]}\n')).documents, [{ value: { a: [1, "no"] }, line: 2 }]);
  assert.deepEqual(await only("{a: no, b: [x]}"), { a: false, b: ["x"] });
});

test("a key set twice is a warning with its line and the last one counts", async () => {
  const { documents, warnings } = await parse("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n");
  assert.deepEqual(documents[0]?.value, { a: 3, b: { c: 2 } });
  assert.deepEqual(warnings, [
    'line 5: key "a" is set twice in one map; the last one counts',
    'line 4: key "c" is set twice in one map; the last one counts',
  ]);
});

test("a mistake is told with line and column", async () => {
  await assert.rejects(parse("a: 1\nb: [1, 2\nc: 3\n"), (error) => {
    assert.ok(error instanceof YamlError);
    assert.equal(error.code, "Syntax");
    assert.ok(error.line !== undefined && error.line >= 2 && error.column !== undefined);
    assert.match(error.message, /^line \d+, column \d+: /);
    return true;
  });
});

test("a key of the prototype stays a plain key", async () => {
  for (const text of ['{"__proto__": {"polluted": 1}}', "__proto__:\n  polluted: 1\n"]) {
    const value = await only(text);
    assert.ok(Object.hasOwn(value as object, "__proto__"));
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  }
});

const bombs: [string, string, string][] = [
  [
    "an alias bomb",
    `${Array.from({ length: 12 }, (_, i) => `a${i}: &a${i} [${i === 0 ? "x" : `*a${i - 1},`.repeat(9)}]`).join("\n")}\n`,
    "TooManyAliases",
  ],
  [
    "an alias bomb of empty collections",
    `{${Array.from({ length: 16 }, (_, i) => `a${i}: &a${i} [${i === 0 ? "{}" : `*a${i - 1},`.repeat(4)}]`).join(", ")}}`,
    "TooManyAliases",
  ],
  ["aliases of one long list", `a: &a [${"{},".repeat(4_000)}]\nb: [${"{c: *a},".repeat(1_500)}]`, "TooManyAliases"],
  ["aliases of one long text", `a: &a ${"x".repeat(300_000)}\nb: [${"*a,".repeat(98)}]`, "TooManyAliases"],
  ["aliases of one long key", `a: &a {${"x".repeat(300_000)}: 1}\nb: [${"*a,".repeat(98)}]`, "TooManyAliases"],
  [
    "aliases that are searched for in each other",
    `z: &z []\na: &a [${"*z,".repeat(2_000)}]\nb: [${"*a,".repeat(2_000)}]`,
    "TooManyAliases",
  ],
  [
    "merge keys that multiply",
    `a: &a {${"? [] : [],".repeat(900)}}\nb: [${"{<<: *a},".repeat(1_200)}]`,
    "TooManyAliases",
  ],
  ["brackets without end", "[".repeat(60_000), "TooDeep"],
  ["nested sequences", "- ".repeat(30_000), "TooDeep"],
  ["nested maps", "{a: ".repeat(2_000) + "1" + "}".repeat(2_000), "TooDeep"],
  ["nested JSON", "[".repeat(10_000) + "]".repeat(10_000), "TooDeep"],
  ["a value that contains itself", "a: &a\n  b: *a\n", "TooDeep"],
  ["an alias of itself that is not there", "a: *nothing", "Syntax"],
  ["junk", Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919) % 256)).toString("latin1"), "Syntax"],
];
for (const [name, text, want] of bombs) {
  test(`${name} is refused as ${want}`, async () => {
    assert.equal(await code(text), want);
  });
}

test("over 10 MiB is refused unread", async () => {
  assert.equal(await code("a".repeat(10 * 1024 * 1024 + 1)), "TooLarge");
});

const large = `items:\n${"- name: some-name\n  value: no\n".repeat(3_000)}`;

test("a large text is parsed in a thread and comes out the same", async () => {
  const { documents } = await parse(`${large}last: 22:22\n`);
  const value = documents[0]?.value as { items: unknown[]; last: string };
  assert.equal(value.items.length, 3_000);
  assert.deepEqual(value.items[2_999], { name: "some-name", value: false });
  assert.equal(value.last, "22:22");
  assert.equal(await code(`${large}bad: [`), "Syntax");
});

test("the thread is ended by the signal and by the time limit", async (t) => {
  const controller = new AbortController();
  const aborted = parseDocuments(large, { clock, signal: controller.signal });
  controller.abort("enough");
  await assert.rejects(aborted, (error) => error === "enough");
  const fake = new FakeClock();
  const endless = parseDocuments(large, { clock: fake, signal, worker: endlessProgram(t) });
  endless.catch(() => undefined);
  while (fake.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
  await fake.advance(5_000);
  await assert.rejects(endless, (error) => error instanceof YamlError && error.code === "TimeLimit");
});

test("a text with many aliases is parsed in a thread", async () => {
  const text = (aliases: number): string => `a: &a []\nb: [${"*a,".repeat(aliases)}]`;
  const options = { clock, signal, worker: "/does/not/exist.cjs" };
  assert.equal((await parseDocuments(text(900), options)).documents.length, 1);
  await assert.rejects(parseDocuments(text(9_000), options), /exist/);
});

test("a thread that dies is an error, not a wait without end", async () => {
  await assert.rejects(parseDocuments(large, { clock, signal, worker: "/does/not/exist.cjs" }), /exist/);
});

/** A program that never answers, as a data: file would be refused by path. */
function endlessProgram(t: TestContext): string {
  const path = join(mkdtempSync(join(tmpdir(), "yaml-")), "endless.cjs");
  writeFileSync(path, "for (;;) {}");
  t.after(() => rmSync(join(path, ".."), { recursive: true }));
  return path;
}
