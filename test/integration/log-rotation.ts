/** Rotation of container logs on real containers: limits hold, no line is lost or doubled, and kill -9 costs nothing. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import { FOREVER, manifest, shell } from "./support/manifests.ts";
import { type Agent, requireMachine, Site } from "./support/site.ts";
import { until } from "./support/until.ts";

requireMachine();

const MIB = 1024 * 1024;
const FLAGS = ["--container-log-max-size=1Mi", "--container-log-max-files=4"];

describe("rotation of container logs", () => {
  const site = new Site();
  let agent: Agent;

  before(async () => {
    agent = await site.up(FLAGS);
  });
  after(() => site.close());

  const logDir = (name: string): string => {
    const root = join(site.state, "log", "pods");
    const pod = readdirSync(root).find((entry) => entry.startsWith(`default_${name}-`)) ?? "";
    return join(root, pod, "main");
  };
  const files = (name: string): string[] => readdirSync(logDir(name)).sort();
  /** The numbers on disk, oldest file first. */
  const numbers = (name: string): number[] => {
    const order = files(name).sort((a, b) => (a === "0.log" ? 1 : b === "0.log" ? -1 : a < b ? -1 : 1));
    const raw = order.map((file) => {
      const path = join(logDir(name), file);
      // Renamed or compressed since it was listed: the next look sees it under its new name.
      if (!existsSync(path)) return "";
      const bytes = readFileSync(path);
      return (file.endsWith(".gz") ? gunzipSync(bytes) : file.endsWith(".tmp") ? Buffer.alloc(0) : bytes).toString();
    });
    return raw.flatMap((text) => [...text.matchAll(/ F (\d+)$/gm)].map(([, number]) => Number(number)));
  };
  const assertGapless = (found: readonly number[], last: number): void => {
    assert.equal(found.at(-1), last);
    const first = found[0] ?? 0;
    const gap = found.findIndex((number, index) => number !== first + index);
    assert.equal(gap, -1, `after ${found[gap - 1]} comes ${found[gap]}`);
  };
  /**
   * Writes the numbers from 1 in bursts of 5,000 lines, about 0.25 MB each. A follower on a busy machine has 3 s before
   * what it has not read is removed as the oldest of four files.
   */
  const counting = (bursts: number): string =>
    `k=0; while [ $k -lt ${bursts} ]; do seq $((k*5000+1)) $((k*5000+5000)); k=$((k+1)); sleep 0.2; done; ${FOREVER}`;

  it("a growing log is rotated, old files are compressed and counted, a follower and --tail see every line", async () => {
    site.write(manifest("busy", { containers: [shell("main", counting(40))] }));
    await site.running("busy");
    const follower = site.start("logs", "-f", "busy");
    await until("everything is written", () => numbers("busy").at(-1) === 200_000);
    await until("the follower has it all", () => follower.stdout.endsWith("200000\n"));
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
    assert.deepEqual(all, numbers("busy"));
    await follower.end("SIGTERM");
  });

  it("an agent that is killed again and again while it rotates loses nothing and leaves nothing half done", async () => {
    site.write(manifest("killed", { containers: [shell("main", counting(30))] }));
    await site.running("killed");
    for (let round = 0; round < 4; round++) {
      await until("something is rotated", () => files("killed").length > 1);
      await agent.end("SIGKILL");
      agent = await site.up(FLAGS);
    }
    await until("everything is written", () => numbers("killed").at(-1) === 150_000);
    await until("the log is within its limits", () => {
      const sizes = files("killed").filter((file) => !file.endsWith(".gz"));
      return sizes.every((file) => !file.endsWith(".tmp")) && files("killed").length <= 4;
    });
    assertGapless(numbers("killed"), 150_000);
    assert.ok(existsSync(join(logDir("killed"), "0.log")));
  });
});
