import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import { type RunProgram, UtilChains } from "./chains.ts";

/** A machine whose iptables has chains and rules, and refuses to work while somebody holds its lock. */
class Machine {
  readonly made = new Set<string>();
  isLocked = false;

  readonly run: RunProgram = async (program, [, , , table = "", how = "", chain = "", ...rule]) => {
    if (this.isLocked) return { code: 4, stderr: "Another app is currently holding the xtables lock" };
    const name = [program, table, chain, ...rule].join(" ");
    if (how === "-N" || how === "-I" || how === "-A") this.made.add(name);
    return { code: this.made.has(name) ? 0 : 1, stderr: "" };
  };
}

test("chains that cannot be made at the start, as somebody holds the lock, are made later", async () => {
  const machine = new Machine();
  machine.isLocked = true;
  const clock = new FakeClock();
  const stop = new AbortController();
  const running = new UtilChains({ run: machine.run, clock, log: silent }).run(stop.signal);
  await clock.advance(60_000);
  assert.equal(machine.made.size, 0);
  machine.isLocked = false;
  await clock.advance(60_000);
  assert.ok([...machine.made].some((name) => name.includes("KUBE-FIREWALL") && name.endsWith("DROP")));
  const made = machine.made.size;
  // Only the rule is removed.
  for (const name of machine.made) if (name.endsWith("DROP")) machine.made.delete(name);
  await clock.advance(60_000);
  assert.equal(machine.made.size, made);
  stop.abort();
  await running;
});
