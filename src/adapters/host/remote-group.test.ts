import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { AbortedError } from "../../lib/abort.ts";
import { FakeClock, SystemClock } from "../../lib/clock.ts";
import { HostError } from "./host-error.ts";
import { changeGroupInChild } from "./remote-group.ts";

const { signal } = new AbortController();
const own = { gid: process.getgid?.() ?? 0, onlyOnMismatch: false, signal, onProgress: () => undefined };

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "group-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** A child that does what the text says. */
function program(t: TestContext, text: string): string {
  const path = join(directory(t), "child.cjs");
  writeFileSync(path, text);
  return path;
}

test("a child gives a tree to a group, and reports its progress", async (t) => {
  const path = directory(t);
  mkdirSync(join(path, "d"));
  for (let file = 0; file < 1100; file++) writeFileSync(join(path, "d", `${file}`), "", { mode: 0o600 });
  chmodSync(path, 0o700);
  const progress: number[] = [];
  await changeGroupInChild(new SystemClock(), path, { ...own, onProgress: (entries) => progress.push(entries) });
  assert.deepEqual(progress, [1000]);
  const modeOf = (name: string): number => statSync(join(path, name)).mode & 0o7777;
  assert.deepEqual([modeOf("."), modeOf("d") & 0o2770, modeOf("d/7")], [0o2770, 0o2770, 0o660]);
});

test("a failure has the words of the child", async () => {
  await assert.rejects(
    changeGroupInChild(new SystemClock(), "/does/not/exist", own),
    /change group of \/does\/not\/exist/,
  );
});

test("a child that dies is a failure", async (t) => {
  const dead = program(t, "process.exit(3)");
  await assert.rejects(changeGroupInChild(new SystemClock(), "/x", { ...own, program: dead }), /ended with 3/);
});

test("a child that makes no progress is killed, and so is one that nobody waits for", async (t) => {
  const clock = new FakeClock();
  const hanging = program(t, "setInterval(() => undefined, 1000)");
  const late = changeGroupInChild(clock, "/x", { ...own, program: hanging });
  late.catch(() => undefined);
  await clock.advance(120_000);
  await assert.rejects(late, (error) => error instanceof HostError && error.code === "Timeout");
  const abort = new AbortController();
  const given = changeGroupInChild(clock, "/x", { ...own, signal: abort.signal, program: hanging });
  abort.abort(new AbortedError());
  await assert.rejects(given, AbortedError);
});
