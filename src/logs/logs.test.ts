import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { CompressedLogFile } from "../adapters/host/compressed-log-file.ts";
import { hostLogFiles } from "../adapters/host/log-files.ts";
import { FakeClock } from "../lib/clock.ts";
import { CriDecoder, type DecodeOptions, HEADER_LIMIT } from "./cri-decoder.ts";
import type { LogFile } from "./files.ts";
import { readLog } from "./read-log.ts";
import { tailStart } from "./tail.ts";

const dir = mkdtempSync(join(tmpdir(), "logs-"));
after(() => rmSync(dir, { recursive: true }));

const at = "2026-01-02T03:04:05.678901234Z";
const out = (text: string, tag = "F"): string => `${at} stdout ${tag} ${text}\n`;
const err = (text: string, tag = "F"): string => `${at} stderr ${tag} ${text}\n`;

function decode(raw: string, block = raw.length, options: DecodeOptions = {}): string {
  const decoder = new CriDecoder(options);
  const bytes = Buffer.from(raw);
  const parts: Buffer[] = [];
  // One buffer for all blocks, as the reader has it: whatever is kept must have been copied.
  const buffer = Buffer.alloc(HEADER_LIMIT + bytes.length);
  for (let from = 0; from < bytes.length; from += block) {
    const count = bytes.copy(buffer, HEADER_LIMIT, from, from + block);
    for (const chunk of decoder.feed(buffer, HEADER_LIMIT, HEADER_LIMIT + count)) parts.push(Buffer.from(chunk));
  }
  return Buffer.concat([...parts, decoder.end()]).toString();
}

const decoded = [
  { name: "plain lines", raw: out("one") + out("two"), want: "one\ntwo\n" },
  { name: "both streams in order", raw: out("one") + err("two"), want: "one\ntwo\n" },
  { name: "text with spaces, and empty lines", raw: out("a  b ") + out(""), want: "a  b \n\n" },
  { name: "an empty line without its last space", raw: `${at} stdout F\n${out("x")}`, want: "\nx\n" },
  {
    name: "partial lines are joined",
    raw: out("one ", "P") + out("two ", "P") + out("three"),
    want: "one two three\n",
  },
  { name: "more tags than one", raw: out("a", "P:x") + out("b", "F:y"), want: "ab\n" },
  {
    name: "the other stream waits for the end of a partial line",
    raw: out("one ", "P") + err("warn") + out("two") + out("x"),
    want: "one two\nwarn\nx\n",
  },
  {
    name: "partial lines of both streams do not mix",
    raw: out("a1", "P") + err("b1", "P") + out("a2") + err("b2") + out("c"),
    want: "a1a2\nb1b2\nc\n",
  },
  { name: "a partial line at the end is shown", raw: out("half", "P"), want: "half" },
  { name: "what waited is shown at the end", raw: out("half", "P") + err("warn"), want: "half\nwarn\n" },
  { name: "a line cut off in its text", raw: out("one") + `${at} stdout F tw`, want: "one\ntw" },
  { name: "a line cut off in its header", raw: `${out("one")}${at} std`, want: `one\n${at} std` },
  { name: "lines of no known form are shown as they are", raw: `hello world\n${out("x")}`, want: "hello world\nx\n" },
  { name: "a long line of no known form", raw: `${"y".repeat(500)}\n`, want: `${"y".repeat(500)}\n` },
  { name: "no stream of that name", raw: `${at} stdin F x\n`, want: `${at} stdin F x\n` },
  ...["stdout ", "stderr "].flatMap((stream) =>
    Array.from(stream, (_, index) => {
      const raw = `${at} ${stream.slice(0, index)}x${stream.slice(index + 1)}F x\n`;
      return { name: `a header of another stream: ${raw.slice(at.length, -1)}`, raw, want: raw };
    }),
  ),
  { name: "an empty line with more tags than one, without its last space", raw: `${at} stdout F:y\n`, want: "\n" },
  {
    name: "a line cut off in its header behind an open line of the other stream",
    raw: `${err("half", "P")}${at} std`,
    want: `half\n${at} std`,
  },
  { name: "bytes of several, split anywhere", raw: out("grüße 🚀", "P") + out("ñ"), want: "grüße 🚀ñ\n" },
];
for (const c of decoded) {
  test(`decoder: ${c.name}`, () => {
    assert.equal(decode(c.raw), c.want);
    for (const block of [1, 2, 3, 7, 50, 51]) assert.equal(decode(c.raw, block), c.want, `in blocks of ${block}`);
  });
}

const early = "2026-01-02T03:04:05Z stdout F early\n2026-01-02T04:04:06.5+01:00 stderr F later\n";
const chosen: { name: string; raw: string; options: DecodeOptions; want: string }[] = [
  { name: "one stream", raw: out("a") + err("b") + out("c"), options: { stream: "stderr" }, want: "b\n" },
  {
    name: "one stream, whatever the other has open",
    raw: out("a", "P") + err("b") + out("c"),
    options: { stream: "stderr" },
    want: "b\n",
  },
  { name: "times", raw: out("a") + err(""), options: { timestamps: true }, want: `${at} a\n${at} \n` },
  {
    name: "a joined line has one time",
    raw: out("a", "P") + out("b"),
    options: { timestamps: true },
    want: `${at} ab\n`,
  },
  {
    name: "what waited has its time",
    raw: out("a", "P") + err("w") + out("b"),
    options: { timestamps: true },
    want: `${at} ab\n${at} w\n`,
  },
  { name: "foreign lines have no time", raw: "x y\n", options: { timestamps: true }, want: "x y\n" },
  {
    name: "a time has nine digits of a second, also where the runtime leaves out zeros at the end",
    raw: `${early}2026-01-02T03:04:07.12345678Z stdout F x\n`.repeat(20),
    options: { timestamps: true },
    want: (
      "2026-01-02T03:04:05.000000000Z early\n2026-01-02T04:04:06.500000000+01:00 later\n" +
      "2026-01-02T03:04:07.123456780Z x\n"
    ).repeat(20),
  },
  {
    name: "a time without a fraction, many times in a row",
    raw: "2026-01-02T03:04:05Z stdout F\n2026-01-02T03:04:05Z stdout F x\n".repeat(100),
    options: { timestamps: true },
    want: "2026-01-02T03:04:05.000000000Z \n2026-01-02T03:04:05.000000000Z x\n".repeat(100),
  },
  {
    name: "what waited has nine digits of a second too",
    raw: `${out("a", "P")}2026-01-02T03:04:05.6Z stderr F w\n${out("b")}`,
    options: { timestamps: true },
    want: `${at} ab\n2026-01-02T03:04:05.600000000Z w\n`,
  },
  { name: "since", raw: early, options: { sinceMs: Date.parse("2026-01-02T03:04:06Z") }, want: "later\n" },
  {
    name: "since, to the instant",
    raw: early,
    options: { sinceMs: Date.parse("2026-01-02T03:04:05Z") },
    want: "early\nlater\n",
  },
];
for (const c of chosen) {
  test(`decoder: ${c.name}`, () => {
    for (const block of [1, 2, 3, 7, 50, 1000])
      assert.equal(decode(c.raw, block, c.options), c.want, `blocks of ${block}`);
  });
}

test("decoder: the other stream does not wait for ever", () => {
  const raw = out("never ends", "P") + err("w".repeat(1000)).repeat(100);
  const text = decode(raw, 4096);
  assert.ok(text.startsWith(`never ends\n${"w".repeat(1000)}\n`));
  assert.equal(text.length, "never ends\n".length + 100 * 1001);
});

test("decoder: any bytes in any blocks give the same text as in one block", () => {
  const line = fc.oneof(
    fc.string(),
    fc.string().map((s) => out(s)),
    fc.string().map((s) => err(s, "P")),
  );
  fc.assert(
    fc.property(fc.array(line), fc.integer({ min: 1, max: 200 }), (lines, block) => {
      const raw = lines.join("");
      assert.equal(decode(raw, block), decode(raw));
    }),
  );
});

function memoryFile(text: string): LogFile {
  const bytes = Buffer.from(text);
  return {
    identity: "memory",
    size: async () => bytes.length,
    // At most 7 bytes a time: a short read is no end.
    read: async (buffer, position) => bytes.copy(buffer, 0, position, Math.min(position + 7, bytes.length)),
    close: async () => undefined,
  };
}

const three = out("one") + out("two") + out("three");
const tails = [
  { name: "last line", raw: three, lines: 1, want: "three\n" },
  { name: "last two", raw: three, lines: 2, want: "two\nthree\n" },
  { name: "all", raw: three, lines: 3, want: "one\ntwo\nthree\n" },
  { name: "more than there are", raw: three, lines: 99, want: "one\ntwo\nthree\n" },
  { name: "none", raw: three, lines: 0, want: "" },
  { name: "an empty log", raw: "", lines: 5, want: "" },
  { name: "a cut-off last line counts", raw: `${three}${at} stdout F fo`, lines: 2, want: "three\nfo" },
  {
    name: "a partial line counts once",
    raw: out("a") + out("b1", "P") + out("b2", "P") + out("b3"),
    lines: 1,
    want: "b1b2b3\n",
  },
  {
    name: "partial and whole",
    raw: out("a1", "P") + out("a2") + out("b1", "P") + out("b2"),
    lines: 2,
    want: "a1a2\nb1b2\n",
  },
  { name: "an open partial line at the end counts", raw: out("a") + out("b", "P"), lines: 1, want: "b" },
  { name: "foreign lines count", raw: "x\ny\nz\n", lines: 2, want: "y\nz\n" },
];
for (const c of tails) {
  test(`tail: ${c.name}`, async () => {
    const end = Buffer.byteLength(c.raw);
    // Every block size moves the borders: through headers, texts and newlines.
    for (let block = 1; block <= end + 1; block++) {
      const { start } = await tailStart(memoryFile(c.raw), c.lines, { end, block });
      assert.equal(decode(c.raw.slice(start)), c.want, `in blocks of ${block}`);
    }
  });
}

let files = 0;
const newPath = (): string => join(dir, `${++files}.log`);

function reading(
  path: string,
  request: { tail?: number; follow?: boolean; limitBytes?: number; sinceMs?: number } = {},
) {
  const clock = new FakeClock();
  const controller = new AbortController();
  const state = { ended: false, text: "", done: false, error: undefined as unknown, open: 0 };
  const follow = { ended: () => state.ended, onChange: () => undefined };
  const open = async (name: string): Promise<LogFile | undefined> => {
    const file = await hostLogFiles.open(name);
    if (file === undefined) return undefined;
    state.open++;
    const close = file.close.bind(file);
    return Object.assign(file, { close: () => close().finally(() => state.open--) });
  };
  const files = { ...hostLogFiles, open, watch: () => undefined };
  const running = (async () => {
    const wanted = { path, ...request, follow: request.follow ? follow : undefined };
    for await (const chunk of readLog({ files, clock }, wanted, controller)) state.text += chunk.toString();
  })()
    .catch((error: unknown) => (state.error = error))
    .finally(() => (state.done = true));
  /** Real file reads finish on their own time; the condition is polled, the clock only moves when the reader sleeps. */
  const until = async (condition: () => boolean): Promise<void> => {
    const end = performance.now() + 30_000;
    while (!condition() && !state.done && performance.now() < end) await clock.advance(clock.waiting > 0 ? 1000 : 0);
    assert.ok(condition(), `not reached; text is ${JSON.stringify(state.text)} ${state.error ?? ""}`);
  };
  return { state, controller, running, until, clock };
}

test("read: a plain read stops at the end", async () => {
  const path = newPath();
  writeFileSync(path, three);
  const { state, running } = reading(path, { tail: 2 });
  await running;
  assert.equal(state.text, "two\nthree\n");
});

test("read: a limit of bytes cuts in the middle of a line", async () => {
  const path = newPath();
  writeFileSync(path, three);
  const { state, running } = reading(path, { limitBytes: 6 });
  await running;
  assert.equal(state.text, "one\ntw");
});

test("read: a missing log is an error of its own", async () => {
  const { state, running } = reading(join(dir, "none.log"));
  await running;
  assert.match(String(state.error), /no such file/);
});

test("follow: shows what is appended, and stops when the container has ended", async () => {
  const path = newPath();
  writeFileSync(path, three);
  const { state, running, until } = reading(path, { tail: 1, follow: true });
  await until(() => state.text === "three\n");
  appendFileSync(path, out("four"));
  await until(() => state.text === "three\nfour\n");
  appendFileSync(path, out("last words"));
  state.ended = true;
  await until(() => state.done);
  await running;
  assert.equal(state.text, "three\nfour\nlast words\n");
});

test("follow: goes over to the new file after a rotation and loses nothing", async () => {
  const path = newPath();
  writeFileSync(path, out("one"));
  const { state, running, until } = reading(path, { follow: true });
  await until(() => state.text === "one\n");
  appendFileSync(path, out("before the rename"));
  renameSync(path, `${path}.20260102-030405`);
  appendFileSync(`${path}.20260102-030405`, out("after the rename"));
  await until(() => state.text === "one\nbefore the rename\nafter the rename\n");
  appendFileSync(`${path}.20260102-030405`, out("just before the new file"));
  writeFileSync(path, out("in the new file"));
  state.ended = true;
  await until(() => state.done);
  await running;
  assert.equal(state.text, "one\nbefore the rename\nafter the rename\njust before the new file\nin the new file\n");
});

test("follow: a rotated file is read until the runtime has begun the new one, however long that takes", async () => {
  const path = newPath();
  writeFileSync(path, out("one"));
  const { state, running, until, clock } = reading(path, { follow: true });
  await until(() => state.text === "one\n");
  renameSync(path, `${path}.20260102-030405`);
  writeFileSync(path, "");
  for (let seconds = 0; seconds < 5; seconds++) {
    await until(() => clock.waiting > 0);
    await clock.advance(1000);
  }
  appendFileSync(`${path}.20260102-030405`, out("late"));
  await until(() => state.text === "one\nlate\n");
  appendFileSync(path, out("in the new file"));
  await until(() => state.text === "one\nlate\nin the new file\n");
  state.ended = true;
  await until(() => state.done);
  await running;
});

/** As the rotator leaves it. */
function compress(path: string): void {
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path)));
  rmSync(path);
}

const behind: { name: string; meanwhile(path: string): void }[] = [
  { name: "a reader that is several rotations behind reads every file in between", meanwhile: () => undefined },
  {
    name: "files that were compressed before the reader came to them are read, none twice",
    meanwhile: (path) => {
      compress(`${path}.20260101-000000`);
      compress(`${path}.20260102-000000`);
    },
  },
  {
    name: "a reader whose file was removed meanwhile goes on with the oldest that is left",
    meanwhile: (path) => {
      rmSync(`${path}.20260101-000000`);
      compress(`${path}.20260102-000000`);
    },
  },
];
for (const { name, meanwhile } of behind) {
  test(`follow: ${name}`, async () => {
    const path = newPath();
    writeFileSync(path, out("one"));
    const { state, running, until } = reading(path, { follow: true });
    await until(() => state.text === "one\n");
    for (const round of [1, 2, 3]) {
      renameSync(path, `${path}.2026010${round}-000000`);
      writeFileSync(path, `2026-01-0${round}T00:00:00Z stdout F after rotation ${round}\n`);
    }
    meanwhile(path);
    await until(() => state.text.endsWith("rotation 3\n"));
    state.ended = true;
    await until(() => state.done);
    await running;
    assert.equal(state.text, "one\nafter rotation 1\nafter rotation 2\nafter rotation 3\n");
  });
}

/** A log of nine lines in three files: the oldest compressed, one second of time apart each. */
function rotatedLog(): string {
  const path = newPath();
  const line = (n: number): string => `2026-01-02T03:04:0${n}Z stdout F line ${n}\n`;
  const files = [`${path}.20260102-030403`, `${path}.20260102-030403_1`, path];
  for (const [index, file] of files.entries()) {
    writeFileSync(file, [0, 1, 2].map((n) => line(index * 3 + n)).join(""));
    const modified = new Date(`2026-01-02T03:04:0${index * 3 + 2}Z`);
    utimesSync(file, modified, modified);
    if (index > 0) continue;
    compress(file);
    utimesSync(`${file}.gz`, modified, modified);
  }
  return path;
}

const wholes: { name: string; request: { tail?: number; sinceMs?: number }; from: number }[] = [
  { name: "everything", request: {}, from: 0 },
  { name: "a tail within the current file", request: { tail: 2 }, from: 7 },
  { name: "a tail of the whole current file", request: { tail: 3 }, from: 6 },
  { name: "a tail that reaches into a rotated file", request: { tail: 5 }, from: 4 },
  { name: "a tail that reaches into a compressed file", request: { tail: 8 }, from: 1 },
  { name: "a tail longer than everything", request: { tail: 50 }, from: 0 },
  { name: "since a time in a compressed file", request: { sinceMs: Date.parse("2026-01-02T03:04:01Z") }, from: 1 },
  { name: "since a time in the current file", request: { sinceMs: Date.parse("2026-01-02T03:04:07Z") }, from: 7 },
];
for (const { name, request, from } of wholes) {
  test(`read across rotations: ${name}`, async () => {
    const { state, running } = reading(rotatedLog(), request);
    await running;
    const want = Array.from({ length: 9 - from }, (_, index) => `line ${from + index}\n`);
    assert.equal(state.text, want.join(""), String(state.error));
    assert.equal(state.open, 0, "a file stays open");
  });
}

/** Six lines in three files; the runtime began "c" and "e" in one file and ended them in the next. */
function splitLog(newest: string): string {
  const path = newPath();
  writeFileSync(`${path}.20260101-000000`, out("a") + out("b") + out("c1", "P"));
  writeFileSync(`${path}.20260102-000000`, out("c2") + out("d") + out("e1", "P"));
  writeFileSync(path, newest);
  return path;
}

const splits = [
  { tail: 0, want: "" },
  { tail: 1, want: "f\n" },
  { tail: 2, want: "e1e2\nf\n" },
  { tail: 3, want: "d\ne1e2\nf\n" },
  { tail: 4, want: "c1c2\nd\ne1e2\nf\n" },
  { tail: 5, want: "b\nc1c2\nd\ne1e2\nf\n" },
  { tail: 7, want: "a\nb\nc1c2\nd\ne1e2\nf\n" },
];
for (const { tail, want } of splits) {
  test(`read across rotations: a line in two files is one of a tail of ${tail}`, async () => {
    const { state, running } = reading(splitLog(out("e2") + out("f")), { tail });
    await running;
    assert.equal(state.text, want, String(state.error));
    assert.equal(state.open, 0, "a file stays open");
  });
}

test("read across rotations: an open line counts as long as the next file is empty", async () => {
  const { state, running } = reading(splitLog(""), { tail: 2 });
  await running;
  assert.equal(state.text, "d\ne1");
});

test("read across rotations: a log whose current file is missing shows what there is", async () => {
  const path = rotatedLog();
  rmSync(path);
  const { state, running } = reading(path, { tail: 2 });
  await running;
  assert.equal(state.text, "line 4\nline 5\n");
});

test("read across rotations: a damaged file is one line of notice, and the others are read", async () => {
  for (const request of [{}, { tail: 50 }]) {
    const path = rotatedLog();
    const [damaged = ""] = readdirSync(dir).filter((name) => join(dir, name).startsWith(path) && name.endsWith(".gz"));
    writeFileSync(join(dir, damaged), readFileSync(join(dir, damaged)).subarray(0, 40));
    const { state, running } = reading(path, request);
    await running;
    const rest = [3, 4, 5, 6, 7, 8].map((n) => `line ${n}\n`).join("");
    assert.equal(state.text, `kubelet: rotated log ${damaged} is damaged\n${rest}`, String(state.error));
  }
});

test("read across rotations: files from before the wanted time are not read", async () => {
  const path = rotatedLog();
  const [damaged = ""] = readdirSync(dir).filter((name) => join(dir, name).startsWith(path) && name.endsWith(".gz"));
  const modified = new Date("2026-01-02T03:04:02Z");
  writeFileSync(join(dir, damaged), "damaged");
  utimesSync(join(dir, damaged), modified, modified);
  const { state, running } = reading(path, { sinceMs: Date.parse("2026-01-02T03:04:04Z") });
  await running;
  assert.equal(state.text, [4, 5, 6, 7, 8].map((n) => `line ${n}\n`).join(""), String(state.error));
});

for (const request of [{}, { tail: 1 }]) {
  test(`read: a current file that cannot be read is an error, ${"tail" in request ? "also for a tail" : "no notice"}`, async () => {
    const broken: LogFile = { ...memoryFile(three), read: () => Promise.reject(new Error("EIO: i/o error, read")) };
    const files = { ...hostLogFiles, open: async () => broken, identity: async () => broken.identity };
    const chunks = readLog({ files, clock: new FakeClock() }, { path: newPath(), ...request }, new AbortController());
    await assert.rejects(async () => {
      for await (const chunk of chunks) assert.fail(chunk.toString());
    }, /EIO/);
  });
}

test("a compressed log is in memory as a whole only while its tail is searched", async () => {
  const path = `${newPath()}.gz`;
  const size = 30 * 1024 * 1024;
  writeFileSync(path, gzipSync(Buffer.alloc(size, "x"), { level: 1 }));
  const file = await hostLogFiles.open(path);
  assert.ok(file instanceof CompressedLogFile);
  const held = (): boolean => Reflect.get(file, "whole") !== undefined;
  assert.equal(await file.size(), size);
  await file.read(Buffer.alloc(10), 5);
  assert.equal(held(), false);
  await file.hold();
  assert.equal(held(), true);
  file.release();
  assert.equal(held(), false);
  await file.close();
});

test("a compressed log of more than is held in memory is read in pieces, backwards too", async () => {
  const path = `${newPath()}.gz`;
  const lines = Array.from({ length: 35 }, (_, n) => out(`line ${n} ${"x".repeat(1 << 20)}`)).join("");
  assert.ok(lines.length > 33 * 1024 * 1024);
  writeFileSync(path, gzipSync(lines, { level: 1 }));
  const file = await hostLogFiles.open(path);
  assert.ok(file !== undefined);
  assert.equal(await file.size(), lines.length);
  for (const position of [lines.length - 10, 5, 20_000_000, 20_000_000, lines.length]) {
    const buffer = Buffer.alloc(10);
    const count: number = await file.read(buffer, position);
    assert.equal(buffer.toString("latin1", 0, count), lines.slice(position, position + 10).slice(0, count));
    assert.equal(count > 0, position < lines.length);
  }
  await file.close();
});

test("follow: what the runtime still writes to the old file is read before the new one", async () => {
  const path = newPath();
  writeFileSync(path, out("one"));
  const { state, running, until } = reading(path, { follow: true });
  await until(() => state.text === "one\n");
  const old = `${path}.20260101-000000`;
  renameSync(path, old);
  writeFileSync(path, out("new"));
  appendFileSync(old, out("late"));
  await until(() => state.text.endsWith("new\n"));
  state.ended = true;
  await until(() => state.done);
  await running;
  assert.equal(state.text, "one\nlate\nnew\n");
});

test("follow: a log that is emptied in place is read from its beginning", async () => {
  const path = newPath();
  writeFileSync(path, three);
  const { state, until, controller, running } = reading(path, { follow: true });
  await until(() => state.text === "one\ntwo\nthree\n");
  truncateSync(path);
  appendFileSync(path, out("new"));
  await until(() => state.text === "one\ntwo\nthree\nnew\n");
  controller.abort();
  await running;
});

test("follow: waits for a log that does not exist yet", async () => {
  const path = newPath();
  const { state, until, controller, running, clock } = reading(path, { follow: true });
  await until(() => clock.waiting > 0);
  writeFileSync(path, out("hello"));
  await until(() => state.text === "hello\n");
  controller.abort();
  await running;
  assert.equal(state.error, undefined);
});

test("the host's watch tells of a write without waiting for the next look", async () => {
  const path = newPath();
  writeFileSync(path, "");
  const controller = new AbortController();
  const changed = new Promise<void>((resolve) => hostLogFiles.watch(path, resolve, controller));
  // The watch alone does not keep a process alive.
  const alive = setInterval(() => undefined, 1000);
  appendFileSync(path, "x");
  await changed;
  clearInterval(alive);
  controller.abort();
});
