/** Rotation of container logs on real containers: limits hold, no line is lost or doubled, and kill -9 costs nothing. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import type { PodExplanation } from "../../src/model/step.ts";
import { ClientAuthority, MainPort } from "../integration/support/main-port.ts";
import { FOREVER, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";

requireMachine();

const MIB = 1024 * 1024;
const FLAGS = ["--container-log-max-size=1Mi", "--container-log-max-files=4"];
/** Lines of the pod that crashes, in bursts of 5,000: its log is rotated three times. */
const LOOP_LINES = 80_000;
/** The back-off of a pod that crashed a few times, and what it takes to start. */
const BACK_OFF_LIMIT_MS = 120_000;

describe("rotation of container logs", () => {
  const site = new Site();
  const authority = new ClientAuthority(site.dir, "ca");
  const flags = [...FLAGS, `--client-ca-file=${authority.path}`];
  let agent: Agent;

  before(async () => {
    agent = await site.up(flags);
    // It crashes while the other tests run.
    const writing = `k=0; while [ $k -lt ${LOOP_LINES / 5000} ]; do seq $((k*5000+1)) $((k*5000+5000)); k=$((k+1)); sleep 0.25; done`;
    const crashing = shell("main", `${writing}; exit 1`);
    site.write(manifest("loop", { initContainers: [shell("setup", writing)], containers: [crashing] }));
  });
  after(() => site.close());

  const logDir = (name: string, container = "main"): string => {
    const root = join(site.state, "log", "pods");
    const pod = readdirSync(root).find((entry) => entry.startsWith(`default_${name}-`)) ?? "";
    return join(root, pod, container);
  };
  const files = (name: string): string[] => readdirSync(logDir(name)).sort();
  /** The numbers on disk, oldest file first. */
  const numbers = (name: string): number[] => {
    const order = files(name).sort((a, b) => (a === "0.log" ? 1 : b === "0.log" ? -1 : a < b ? -1 : 1));
    const raw = order.map((file) => {
      const bytes = file.endsWith(".tmp") ? undefined : readIfExists(join(logDir(name), file));
      // Renamed or compressed since it was listed: the next look sees it under its new name.
      if (bytes === undefined) return "";
      return (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString();
    });
    // A line that is being written when its file is rotated has a part in each, the first one tagged P.
    const lines = [...raw.join("").matchAll(/^\S+ \S+ ([FP]) (\d*)$/gm)];
    let begun = "";
    const found = lines.flatMap(([, tag, part = ""]) => {
      const text = begun + part;
      begun = tag === "P" ? text : "";
      return tag === "P" ? [] : [Number(text)];
    });
    return wholeLines(found);
  };
  /** Without the first line if it may be the rest of one whose beginning was removed with the oldest file. */
  const wholeLines = (found: readonly number[]): number[] => found.slice(found[0] === 1 ? 0 : 1);
  /** When the first line of the init container with this number and one more digit was written. */
  const timeOf = (name: string, number: number): number => {
    const texts = readdirSync(logDir(name, "setup")).map((file) => {
      const bytes = readFileSync(join(logDir(name, "setup"), file));
      return (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString();
    });
    return Date.parse(new RegExp(`^(\\S+) stdout F ${number}\\d$`, "m").exec(texts.join(""))?.[1] ?? "");
  };
  const assertGapless = (found: readonly number[], last: number): void => {
    assert.equal(found.at(-1), last);
    const first = found[0] ?? 0;
    const gap = found.findIndex((number, index) => number !== first + index);
    assert.equal(gap, -1, `after ${found[gap - 1]} comes ${found[gap]}`);
  };
  /**
   * Writes the numbers from 1 in bursts of 5,000 lines, about 0.25 MB each. A follower on a busy machine has 6 s before
   * what it has not read is removed as the oldest of four files, and a rotation may be late by two bursts.
   */
  const counting = (bursts: number): string =>
    `k=0; while [ $k -lt ${bursts} ]; do seq $((k*5000+1)) $((k*5000+5000)); k=$((k+1)); sleep 0.4; done; ${FOREVER}`;

  it("a growing log is rotated, old files are compressed and counted, a follower and --tail see every line", async () => {
    site.write(manifest("busy", { containers: [shell("main", counting(40))] }));
    await site.running("busy");
    const follower = site.start("logs", "-f", "busy");
    // First, because reading all files again and again would keep the follower from its work.
    await until("the follower has it all", () => follower.stdout.endsWith("200000\n"), { limitMs: 60_000 });
    await until("everything is written", () => numbers("busy").at(-1) === 200_000);
    assertGapless(follower.stdout.trim().split("\n").map(Number), 200_000);
    await until(
      "the older ones are compressed",
      // Beside its compressed file the plain one stays for a moment.
      () => files("busy").filter((file) => file.endsWith(".gz")).length === 2 && files("busy").length === 4,
      {
        seen: () => files("busy"),
      },
    );
    assert.equal(files("busy").length, 4, files("busy").join(" "));
    assertGapless(numbers("busy"), 200_000);
    for (const file of files("busy").filter((name) => !name.endsWith(".gz"))) {
      assert.ok(statSync(join(logDir("busy"), file)).size < 1.4 * MIB, file);
    }
    const tail = (await site.logs("busy", "--tail", "30000")).trim().split("\n").map(Number);
    assert.equal(tail.length, 30_000);
    assertGapless(tail, 200_000);
    const all = (await site.logs("busy")).trim().split("\n").map(Number);
    assert.deepEqual(wholeLines(all), numbers("busy"));
    await follower.end("SIGTERM");
  });

  it("init and crash-looping containers are rotated; --previous and --since read across rotations", async () => {
    const numbersIn = (text: string): number[] => text.trim().split("\n").map(Number);
    await site.pod("loop", "has crashed twice", ({ restarts, state }) => restarts >= 1 && state === "CrashLoopBackOff");
    const filesOf = (container: string, base: string): string[] =>
      readdirSync(logDir("loop", container)).filter((file) => file.startsWith(base));
    const isRotated = ({ length }: readonly string[]): boolean => length >= 3 && length <= 4;
    assert.ok(isRotated(filesOf("setup", "0.log")), filesOf("setup", "").join(" "));
    assertGapless(numbersIn(await site.logs("loop", "-c", "setup")), LOOP_LINES);
    const ann = new MainPort(agent.mainPort, authority.issue("ann"));
    const since = async (seconds: number): Promise<number[]> => {
      const { status, body } = await ann.ask(`/containerLogs/default/loop-here/setup?sinceSeconds=${seconds}`, "GET");
      assert.equal(status, 200, body);
      return body === "" ? [] : numbersIn(body);
    };
    assertGapless(await since(3600), LOOP_LINES);
    // From the middle of the log on: some files as a whole, one in part. The seconds count from when they are read.
    const half = await until("a part of the log", async () => {
      const seconds = (Date.now() - timeOf("loop", LOOP_LINES / 20)) / 1000;
      const found = await since(Math.round(seconds));
      return found.length > 0 && found.length < LOOP_LINES && found;
    });
    assertGapless(half, LOOP_LINES);
    const runs = async (): Promise<PodExplanation | undefined> => {
      const pod = await site.find("loop");
      return pod?.containers.some(({ name, state }) => name === "main" && state === "running") ? pod : undefined;
    };
    const again = await until("loop runs again", runs, { limitMs: BACK_OFF_LIMIT_MS });
    const before = `${again.restarts - 1}.log`;
    assert.ok(isRotated(filesOf("main", before)), `${before}: ${filesOf("main", "").join(" ")}`);
    assertGapless(numbersIn(await site.logs("loop", "--previous")), LOOP_LINES);
    site.remove("loop");
    await site.gone("loop");
  });

  it("an agent that is killed again and again while it rotates loses nothing and leaves nothing half done", async () => {
    site.write(manifest("killed", { containers: [shell("main", counting(30))] }));
    await site.running("killed");
    for (let round = 0; round < 4; round++) {
      await until("something is rotated", () => files("killed").length > 1);
      await agent.end("SIGKILL");
      agent = await site.up(flags);
    }
    await until("everything is written", () => numbers("killed").at(-1) === 150_000);
    await until("the log is within its limits", () => {
      const all = files("killed");
      // All are compressed but the current one and the one before: nothing is there twice.
      return all.filter((file) => !file.endsWith(".gz")).length <= 2 && all.length <= 4;
    });
    assertGapless(numbers("killed"), 150_000);
    assert.ok(existsSync(join(logDir("killed"), "0.log")));
  });
});

function readIfExists(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOENT");
    return undefined;
  }
}
