import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "./clock.ts";
import { fixed, LiveValue } from "./live.ts";
import { createLogger, fitsModule, type Logger, type ModuleLevel } from "./log.ts";

function capture(format: "text" | "json", verbosity = fixed(0)): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  const wall = new Date(2026, 10, 15, 21, 10, 20, 123).getTime() + 0.456;
  const clock = new FakeClock({ wall, mono: 0 });
  const log = createLogger({ sink: { write: (line) => lines.push(line) }, clock, format, verbosity });
  return { log, lines };
}

const pid = String(process.pid).padStart(7);

test("a text line has klog's header in local time, a quoted message and quoted strings", () => {
  const { log, lines } = capture("text");
  log.info("container started", { pod: "default/web", attempt: 2, ok: true, none: undefined, ids: ["a"] });
  const want = `I1115 21:10:20.123456 ${pid} kubelet] "container started" pod="default/web" attempt=2 ok=true ids=["a"]\n`;
  assert.deepEqual(lines, [want]);
});

test("severity letters, and the error with its causes as err", () => {
  const { log, lines } = capture("text");
  log.warn("slow");
  log.error("pull failed", new Error("no route", { cause: new Error("ENETUNREACH") }), { image: "x" });
  log.error("odd", undefined);
  assert.match(lines[0] ?? "", /^W1115 .*"slow"\n$/);
  assert.match(lines[1] ?? "", /^E1115 .*"pull failed" err="no route: ENETUNREACH" image="x"\n$/);
  assert.match(lines[2] ?? "", /"odd" err="null"\n$/);
});

test("a value from outside stays on its line and does not reach the terminal as control characters", () => {
  const { log, lines } = capture("text");
  log.info("read", { text: 'a"\nE1115 forged\u001b[2J\u009b\u202e', nested: { deep: "\u009b2J" } });
  assert.equal(lines[0]?.split("\n").length, 2);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  assert.doesNotMatch(lines[0] ?? "", /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
});

test("verbosity is read at each line", () => {
  const verbosity = new LiveValue(2);
  const { log, lines } = capture("text", verbosity);
  log.debug(2, "shown");
  log.debug(3, "hidden");
  verbosity.set(4);
  log.debug(4, "shown now");
  assert.equal(lines.length, 2);
});

test("a JSON line is one object with ts in milliseconds, v, msg, err and the fields", () => {
  const { log, lines } = capture("json", fixed(5));
  log.with({ pod: "web" }).debug(5, "step", { n: 1n, when: new Error("later") });
  log.error("failed", new Error("why"), { msg: "not the message" });
  const [first, second] = lines.map((line) => JSON.parse(line));
  const ts = new Date(2026, 10, 15, 21, 10, 20, 123).getTime() + 0.456;
  assert.deepEqual(first, { ts, v: 5, logger: "kubelet", msg: "step", pod: "web", n: "1", when: "later" });
  assert.deepEqual(second, { ts, logger: "kubelet", msg: "failed", err: "why", msg_: "not the message" });
});

test("what cannot be printed never throws and never loses the line", () => {
  const cycle: Record<string, unknown> = { name: "x" };
  cycle.self = cycle;
  const thrower = {
    get boom(): string {
      throw new Error("no");
    },
  };
  for (const format of ["text", "json"] as const) {
    const { log, lines } = capture(format);
    log.info("odd", { cycle, thrower, symbol: Symbol("s"), fn: () => 1, date: new Date(Number.NaN) });
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /odd/);
  }
});

test("bound fields come first and a later one of the same name wins", () => {
  const { log, lines } = capture("text");
  log.with({ pod: "a", uid: "1" }).with({ pod: "b" }).info("x", { uid: "2" });
  assert.match(lines[0] ?? "", /"x" pod="b" uid="2"\n$/);
});

test("single files say more than the rest, or less, by the first pattern that fits", () => {
  const lines: string[] = [];
  const modules = new LiveValue<readonly ModuleLevel[]>([{ filePattern: "nobody", verbosity: 9 }]);
  const sink = { write: (line: string) => lines.push(line) };
  const log = createLogger({ sink, clock: new FakeClock(), format: "text", verbosity: fixed(0), modules });
  log.debug(4, "hidden");
  // This file is `log.test.ts`.
  modules.set([
    { filePattern: "log.*", verbosity: 4 },
    { filePattern: "*", verbosity: 0 },
  ]);
  log.with({ a: 1 }).debug(4, "shown");
  log.debug(5, "too much");
  modules.set([{ filePattern: "log?test", verbosity: 0 }]);
  log.debug(1, "hidden again");
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /"shown" a=1/);
});

for (const [name, pattern, want] of [
  ["worker", "worker", true],
  ["worker", "work*", true],
  ["worker", "work", false],
  ["status-writer", "status?writer", true],
  ["a.b", "a?b", true],
  ["aXb", "a.b", false],
  ["a+b", "a+b", true],
] as const) {
  test(`${name} ${want ? "fits" : "does not fit"} ${pattern}`, () => assert.equal(fitsModule(name, pattern), want));
}

test("with streams apart, only errors go to the first", () => {
  const [errors, rest]: [string[], string[]] = [[], []];
  const sinks = {
    sink: { write: (line: string) => errors.push(line) },
    infoSink: { write: (l: string) => rest.push(l) },
  };
  const log = createLogger({ ...sinks, clock: new FakeClock(), format: "text", verbosity: fixed(0) });
  log.info("one");
  log.warn("two");
  log.error("three", new Error("why"));
  assert.deepEqual([errors.length, rest.length], [1, 2]);
});

for (const format of ["text", "json"] as const) {
  test(`a ${format} line with a huge error or value is bounded`, () => {
    const huge = "x".repeat(1024 * 1024);
    const { log, lines } = capture(format);
    log.error("failed", new Error(huge));
    log.info("read", { text: huge });
    for (const line of lines) assert.ok(Buffer.byteLength(line) < 9000, `${Buffer.byteLength(line)} bytes`);
    assert.equal(lines.length, 2);
  });
}
