/** CPUs of single containers on real ones: what a container may run on, before and after a restart of the agent. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { readMachineTopology } from "../../src/adapters/host/machine-topology.ts";
import { formatCpuSet, parseCpuSet, sortedCpus, without } from "../../src/model/cpu-set.ts";
import type { TopologyReport } from "../../src/model/topology-report.ts";
import { manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";

requireMachine();

const { cpus } = readMachineTopology();
if (cpus.length < 2) {
  process.stdout.write("a CPU for one container needs a second one for all others\n");
  process.exit(77);
}
const all = new Set(cpus.map(({ cpu }) => cpu));
const [reserved = 0] = sortedCpus(all);

/** Writes the CPUs that it may use at each change. */
const WATCH = `trap 'exit 0' TERM
while :; do
  now=$(grep Cpus_allowed_list /proc/self/status | tr -d '[:space:]')
  [ "$now" = "$old" ] || echo "$now"
  old=$now
  sleep 0.2 & wait $!
done`;

describe("CPUs of single containers", () => {
  const site = new Site();
  const flags = ["--cpu-manager-policy=static", `--reserved-cpus=${reserved}`, "--topology-manager-policy=restricted"];
  let agent: Agent;
  before(async () => {
    agent = await site.up(flags);
  });
  after(() => site.close());

  /** The CPUs that the container may use, as it sees itself. */
  const seen = async (name: string): Promise<string> =>
    (await site.logs(name)).trim().split("\n").at(-1)?.replace("Cpus_allowed_list:", "") ?? "";
  const sees = (name: string, want: string): Promise<unknown> =>
    until(`${name} runs on CPUs ${want}`, async () => (await seen(name)) === want, { seen: () => seen(name) });
  const guaranteed = (name: string) => {
    const limits = { cpu: "1", memory: "64Mi" };
    return manifest(name, { containers: [shell("main", WATCH, { resources: { limits, requests: limits } })] });
  };
  const stateFile = join(site.state, "kubelet", "cpu_manager_state");
  const state = (): { defaultCpuSet: string; entries?: Record<string, Record<string, string>> } =>
    JSON.parse(readFileSync(stateFile, "utf8"));
  const owned = (): string => Object.values(Object.values(state().entries ?? {})[0] ?? {})[0] ?? "";

  it("are taken from all others, survive a restart of the agent, and are given back", async () => {
    site.write(manifest("shared", { containers: [shell("main", WATCH)] }));
    await site.running("shared");
    await sees("shared", formatCpuSet(all));

    site.write(guaranteed("own"));
    await site.running("own");
    const cpu = owned();
    assert.equal(parseCpuSet(cpu).size, 1);
    assert.ok(!parseCpuSet(cpu).has(reserved));
    const rest = formatCpuSet(without(all, parseCpuSet(cpu)));
    await sees("own", cpu);
    await sees("shared", rest);
    const report = JSON.parse((await site.run("topology", "-o", "json")).stdout) as TopologyReport;
    assert.deepEqual(
      report.holdings.map(({ pod, container, cpus }) => [pod, container, cpus.join()]),
      [["own-here", "main", cpu]],
    );
    assert.match((await site.run("topology")).stdout, new RegExp(`^A default/own-here main: CPUs ${cpu}\\b`, "m"));

    await agent.end("SIGKILL");
    agent = await site.up(flags);
    await site.running("own");
    assert.deepEqual([owned(), await seen("own"), await seen("shared")], [cpu, cpu, rest]);
    // Made by the new agent.
    site.write(manifest("later", { containers: [shell("main", WATCH)] }));
    await site.running("later");
    await sees("later", rest);

    // As after a change from the policy none: what runs gets its CPU again, and runs on.
    await agent.end("SIGTERM");
    rmSync(stateFile);
    agent = await site.up(flags);
    await until("the pod has a CPU again", () => existsSync(stateFile) && owned() !== "");
    await sees("own", owned());
    for (const name of ["shared", "later"]) await sees(name, formatCpuSet(without(all, parseCpuSet(owned()))));
    assert.equal((await site.running("own")).containers[0]?.restarts, 0);

    site.remove("own");
    await site.gone("own");
    await sees("shared", formatCpuSet(all));
    // Synced to the disk while others have its CPUs already.
    await until("it is persisted", () => state().entries === undefined);
  });
});
