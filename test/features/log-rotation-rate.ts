/** A real container that writes 20 MB a second: how far its log exceeds the limit before it is rotated. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import { rotatedLogs } from "../../src/logs/rotation/plan-rotation.ts";
import { manifest, shell } from "../integration/support/manifests.ts";
import { requireMachine, Site } from "../integration/support/site.ts";
import { pause, until } from "../integration/support/until.ts";

requireMachine();

const MIB = 1024 * 1024;
/** The default of `containerLogMaxSize`. */
const LIMIT_BYTES = 10 * MIB;
/** In the file, with what the runtime writes before each line. */
const BYTES_PER_SECOND = 20e6;
const SECONDS = 12;
const LINE_BYTES = 1000;
const HEADER_BYTES = "2026-01-02T03:04:05.678901234Z stdout F ".length;
const LINES = Math.round((BYTES_PER_SECOND * SECONDS) / (LINE_BYTES + HEADER_BYTES));
const TICK_MS = 5;
/** After a stall of the machine the writer goes on at its rate: it does not make up for more than this. */
const MOST_LATE_MS = 20;
const FILLING = "x".repeat(LINE_BYTES - 10);

/** Lines from `first` to `last`, each with its number. */
function lines(first: number, last: number): string {
  let text = "";
  for (let number = first; number <= last; number++) text += `${String(number).padStart(8, "0")} ${FILLING}\n`;
  return text;
}

/** Writes all lines into a pipe at the rate; resolves to the bytes per second that it reached, and how often it was late. */
async function writeAtRate(pipe: FileHandle): Promise<{ rate: number; stalls: number }> {
  const perMs = BYTES_PER_SECOND / 1000 / (LINE_BYTES + HEADER_BYTES);
  const began = performance.now();
  let [due, written, at, stalls] = [0, 0, began, 0];
  while (written < LINES) {
    const now = performance.now();
    if (now - at > MOST_LATE_MS) stalls++;
    due = Math.min(LINES, due + Math.min(now - at, MOST_LATE_MS) * perMs);
    at = now;
    const last = Math.floor(due);
    if (last > written) await pipe.write(lines(written + 1, last));
    written = last;
    await pause(TICK_MS);
  }
  const rate = (LINES * (LINE_BYTES + HEADER_BYTES)) / ((performance.now() - began) / 1000);
  return { rate, stalls };
}

describe("a container that writes 20 MB a second", () => {
  const site = new Site();
  after(() => site.close());

  it("exceeds the size of its log by less than a tenth, and no line is lost or doubled", async (t) => {
    // Nothing is removed, so that every line can be counted.
    await site.up(["--container-log-max-files=60"]);
    const shared = join(site.dir, "shared");
    mkdirSync(shared);
    execFileSync("mkfifo", [join(shared, "pipe")]);
    const volumes = [{ name: "shared", hostPath: { path: shared } }];
    const writer = shell("main", "cat /shared/pipe; exec sleep 3600", {
      volumeMounts: [{ name: "shared", mountPath: "/shared" }],
    });
    site.write(manifest("writer", { containers: [writer], volumes, terminationGracePeriodSeconds: 0 }));
    await site.running("writer");
    const pipe = await open(join(shared, "pipe"), "w");
    const { rate, stalls } = await writeAtRate(pipe);
    await pipe.close();
    const root = join(site.state, "log", "pods");
    const directory = join(root, readdirSync(root).find((name) => name.startsWith("default_writer-")) ?? "", "main");
    await until("the last line is there", () => lastNumber(directory) === LINES);
    await until("all is compressed", () => {
      const plain = readdirSync(directory).filter((name) => !name.endsWith(".gz"));
      // The current one, and the one before.
      return plain.length === 2;
    });
    const sizes = assertEveryLine(directory);
    const overshoots = sizes.slice(0, -1).map((size) => ((size - LIMIT_BYTES) / LIMIT_BYTES) * 100);
    const shown = overshoots.map((percent) => percent.toFixed(1)).join(", ");
    const sorted = overshoots.toSorted((a, b) => a - b);
    t.diagnostic(
      `${(rate / 1e6).toFixed(1)} MB/s, late ${stalls} times; ${overshoots.length} rotations exceeded the limit by ${shown} %`,
    );
    assert.ok(rate > 0.75 * BYTES_PER_SECOND, `only ${rate} bytes a second were written`);
    assert.ok(overshoots.length >= 15, `${overshoots.length} rotations`);
    assert.ok((sorted[0] ?? -1) >= 0, shown);
    assert.ok((sorted[Math.floor(sorted.length / 2)] ?? 100) < 6, shown);
    // A machine that keeps the writer waiting keeps the agent waiting, too.
    const beyond = overshoots.filter((percent) => percent >= 10);
    assert.ok(beyond.length <= stalls, `late ${stalls} times: ${shown}`);
    assert.ok((sorted.at(-1) ?? 100) < 30, shown);
  });
});

function lastNumber(directory: string): number {
  let text: string;
  try {
    text = readFileSync(join(directory, "0.log"), "latin1");
  } catch {
    // Missing for a moment while it is rotated.
    return 0;
  }
  return Number(/ F (\d{8}) x+\n$/.exec(text.slice(-2 * LINE_BYTES))?.[1] ?? 0);
}

/** Every line is in the files, once and in order. Returns the sizes of the files before they were compressed, oldest first. */
function assertEveryLine(directory: string): number[] {
  const names = [...rotatedLogs("0.log", readdirSync(directory)).map(({ name }) => name), "0.log"];
  let expected = 1;
  let begun = "";
  const sizes = names.map((name) => {
    const bytes = readFileSync(join(directory, name));
    const text = (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("latin1");
    // A line that is being written when its file is rotated has a part in each.
    for (const [, tag, part = ""] of text.matchAll(/^\S+ stdout ([FP]) (.*)$/gm)) {
      begun += part;
      if (tag === "P") continue;
      assert.equal(begun, lines(expected, expected).trimEnd(), `${name}: line ${expected}`);
      expected++;
      begun = "";
    }
    return text.length;
  });
  assert.equal(expected - 1, LINES);
  return sizes;
}
