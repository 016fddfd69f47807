import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import { type RunProgram, UtilChains } from "./chains.ts";

const NAMESPACE = `kt-chains-${process.pid}`;
const hasIptables = spawnSync("iptables", ["--version"]).status === 0;

/** Runs a program in a network namespace of its own: the machine's rules are not touched. */
const run: RunProgram = async (file, args) => {
  const { status, stderr } = spawnSync("ip", ["netns", "exec", NAMESPACE, file, ...args], { encoding: "utf8" });
  return { code: status ?? undefined, stderr };
};
const rules = (table: string): string =>
  execFileSync("ip", ["netns", "exec", NAMESPACE, "iptables", "-t", table, "-S"], { encoding: "utf8" });

describe("chains that other components look for", () => {
  before(() => void execFileSync("ip", ["netns", "add", NAMESPACE]));
  after(() => void execFileSync("ip", ["netns", "delete", NAMESPACE]));

  test("are made once, and again when somebody flushed them", { skip: !hasIptables && "no iptables" }, async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const running = new UtilChains({ run, clock, log: silent }).run(stop.signal);
    const done = async (): Promise<void> => {
      while (clock.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
    };
    await done();
    const mangle = rules("mangle");
    assert.match(mangle, /^-N KUBE-IPTABLES-HINT$/m);
    assert.match(mangle, /^-N KUBE-KUBELET-CANARY$/m);
    const filter = rules("filter");
    assert.match(filter, /^-A (INPUT|OUTPUT) -j KUBE-FIREWALL$/m);
    assert.match(filter, /^-A KUBE-FIREWALL ! -s 127\.0\.0\.0\/8 -d 127\.0\.0\.0\/8 .*-j DROP$/m);
    await clock.advance(60_000);
    await done();
    assert.equal(rules("filter"), filter, "nothing is added twice");
    await run("iptables", ["-t", "mangle", "-X"]);
    await clock.advance(60_000);
    await done();
    assert.match(rules("mangle"), /KUBE-IPTABLES-HINT/);
    stop.abort();
    await running;
  });
});

test("a machine without iptables is left alone", async () => {
  const stop = new AbortController();
  let calls = 0;
  const none: RunProgram = async () => {
    calls++;
    return { code: undefined, stderr: "" };
  };
  const clock = new FakeClock();
  const running = new UtilChains({ run: none, clock, log: silent }).run(stop.signal);
  await clock.advance(600_000);
  stop.abort();
  await running;
  assert.equal(calls, 4, "each program is tried once");
});
