/** What watches over the node: kills for lack of memory, and a shutdown that a login manager on a private bus announces. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { FakeLogind } from "../support/fake-logind.ts";
import { PrivateBus } from "../support/private-bus.ts";
import { forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, requireMachine, Site } from "./support/site.ts";
import { until } from "./support/until.ts";

requireMachine();

const CONFIG = {
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  shutdownGracePeriod: "40s",
  shutdownGracePeriodCriticalPods: "20s",
  // The default of cgroup v2 is to kill all processes of the container.
  singleProcessOOMKill: true,
};
/** Fills memory in a child, which is killed, and ends by itself when it is told to. */
const HOG = "(x=0123456789abcdef; while :; do x=$x$x; done); until [ -e /flags/end ]; do sleep 0.1; done; exit 3";
describe("guards of the node", () => {
  const site = new Site();
  const bus = new PrivateBus();
  const config = join(bus.dir, "kubelet.json");
  let logind: FakeLogind | undefined;
  let agent: Agent;

  const up = async (): Promise<void> => {
    agent = await site.up([`--config=${config}`], { env: bus.env });
  };
  const killsSeen = async () => (await site.events()).filter(({ reason }) => reason === "OOMKilling");

  before(async () => {
    writeFileSync(config, JSON.stringify(CONFIG));
    logind = await bus.start();
    await up();
  });
  after(async () => {
    try {
      await site.close();
    } finally {
      logind?.close();
      bus.close();
    }
  });

  it("a child that the kernel kills is reported with its container, which counts as OOMKilled", async () => {
    const flags = mkdtempSync(join(site.dir, "f-"));
    const volumeMounts = [{ name: "flags", mountPath: "/flags" }];
    const containers = [shell("hungry", HOG, { resources: { limits: { memory: "24Mi" } }, volumeMounts })];
    const volumes = [{ name: "flags", hostPath: { path: flags } }];
    site.write(manifest("greedy", { containers, volumes, restartPolicy: "Never" }));
    const [event] = await until("the kill is reported", async () => {
      const seen = await killsSeen();
      return seen.length > 0 && seen;
    });
    assert.equal(event?.container, "hungry");
    assert.match(
      event.message,
      /^Container hungry: the kernel killed process \S+ because its memory limit was reached$/,
    );
    writeFileSync(join(flags, "end"), "");
    const { containers: ended } = await site.pod("greedy", "has ended", ({ phase }) => phase === "Failed");
    assert.deepEqual([ended[0]?.reason, ended[0]?.exitCode], ["OOMKilled", 3]);
    const metrics = await (await fetch(`http://127.0.0.1:${agent.readOnlyPort}/metrics`)).text();
    assert.match(metrics, /^kubelet_ts_oom_kills_total\{scope="container"\} [1-9]/m);
  });

  it("another agent does not report it again", async () => {
    const state = join(site.state, "kubelet/oom_watcher_state");
    const sequence = (): number => (JSON.parse(readFileSync(state, "utf8")) as { sequence: number }).sequence;
    // It is persisted beside the report; an agent that is killed before may report it again.
    await until("the kill is persisted", () => sequence() > 0);
    await agent.end("SIGKILL");
    await up();
    await site.pod("greedy", "is known", ({ phase }) => phase === "Failed");
    assert.ok(sequence() > 0);
    assert.deepEqual(await killsSeen(), []);
  });

  it("a shutdown ends pods in order, then lets the machine go, and no pod is admitted", async (t) => {
    if (logind === undefined) return t.skip("dbus-daemon is not installed");
    const { held } = logind;
    await until("the agent delays shutdowns", () => held === 1 || logind?.held === 1);
    const slow = "trap 'sleep 1; exit 0' TERM; while :; do sleep 3600 & wait $!; done";
    site.write(manifest("web", { containers: [shell("main", slow)], terminationGracePeriodSeconds: 15 }));
    site.write(manifest("dns", { containers: [shell("main", forever())], priority: 2_000_000_000 }));
    await site.running("web");
    await site.running("dns");
    logind.announce(true);
    const web = await site.pod("web", "has ended", ({ phase }) => phase === "Failed");
    const dns = await site.pod("dns", "has ended", ({ phase }) => phase === "Failed");
    assert.deepEqual([web.state, dns.state], ["Terminated", "Terminated"]);
    assert.ok((dns.containers[0]?.since ?? 0) >= (web.containers[0]?.since ?? Number.POSITIVE_INFINITY));
    await until("the machine may go", () => logind?.held === 0);
    site.write(manifest("late"));
    await site.pod("late", "is rejected", ({ state }) => state === "NodeShutdown");
    const state = readFileSync(join(site.state, "kubelet/graceful_node_shutdown_state"), "utf8");
    const { startTime, endTime } = JSON.parse(state) as { startTime: string; endTime: string };
    assert.ok(Date.parse(endTime) > Date.parse(startTime));
  });

  it("one that is cancelled lets pods in again, and the next one is delayed", async (t) => {
    if (logind === undefined) return t.skip("dbus-daemon is not installed");
    logind.announce(false);
    await until("the agent delays shutdowns again", () => logind?.held === 1);
    site.write(manifest("again"));
    await site.running("again");
  });
});
