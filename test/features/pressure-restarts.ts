/** What watches over the node goes on over restarts of the agent and of containers: OOM kills, and a shutdown. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import type { FakeLogind } from "../support/fake-logind.ts";
import { PrivateBus } from "../support/private-bus.ts";

requireMachine();

const CONFIG = {
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  shutdownGracePeriod: "40s",
  shutdownGracePeriodCriticalPods: "10s",
};
/** Fills memory until the kernel kills it. */
const FILL = "x=0123456789abcdef; while :; do x=$x$x; done";

/** Processes that the kernel killed for lack of memory since the boot. */
const kernelKills = (): number => Number(/^oom_kill (\d+)/m.exec(readFileSync("/proc/vmstat", "utf8"))?.[1] ?? 0);
const isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");

describe("guards of the node over restarts", () => {
  const site = new Site();
  const bus = new PrivateBus();
  const config = join(bus.dir, "kubelet.json");
  const shared = join(bus.dir, "shared");
  let logind: FakeLogind | undefined;
  let agent: Agent;

  const up = async (): Promise<void> => {
    agent = await site.up([`--config=${config}`], { env: bus.env });
  };
  const volumes = [{ name: "shared", hostPath: { path: shared } }];
  const limited = {
    resources: { limits: { memory: "24Mi" } },
    volumeMounts: [{ name: "shared", mountPath: "/shared" }],
  };

  before(async () => {
    writeFileSync(config, JSON.stringify(CONFIG));
    mkdirSync(shared);
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

  it("the kills of a container are counted over its restarts, which the kernel forgets", async () => {
    const once = forever(`[ -e /shared/once ] || { : > /shared/once; ${FILL}; }`);
    site.write(manifest("again", { containers: [shell("main", once, limited)], volumes }));
    await site.pod(
      "again",
      "runs again",
      ({ containers }) => (containers[0]?.restarts ?? 0) > 0 && containers[0]?.state === "running",
    );
    const page = async (): Promise<string> =>
      (await fetch(`http://127.0.0.1:${agent.readOnlyPort}/metrics/cadvisor`)).text();
    await until("it is counted", async () =>
      /^container_oom_events_total\{container="main",[^}]*pod="again-[^}]*\} 1 /m.test(await page()),
    );
  });

  it("a kill ends all processes of the container", { skip: !isUnified && "needs cgroup v2" }, async () => {
    const containers = [shell("main", `(${FILL}); sleep 3600`, limited)];
    site.write(manifest("group", { containers, volumes, restartPolicy: "Never" }));
    const { containers: ended } = await site.pod("group", "has ended", ({ phase }) => phase === "Failed");
    assert.deepEqual([ended[0]?.reason, ended[0]?.exitCode], ["OOMKilled", 137]);
  });

  it("a kill while no agent runs is reported with its container by the next one", async () => {
    const told = `while [ ! -e /shared/go ]; do sleep 0.1; done; (${FILL}); sleep 3600`;
    site.write(manifest("meanwhile", { containers: [shell("hungry", told, limited)], volumes }));
    await site.running("meanwhile");
    await agent.end("SIGKILL");
    const kills = kernelKills();
    writeFileSync(join(shared, "go"), "");
    await until("the kernel has killed the child", () => kernelKills() > kills);
    await up();
    const { container } = await site.event("OOMKilling", "meanwhile");
    assert.equal(container, "hungry");
  });

  it("an agent that starts during a shutdown admits nothing, ends what still runs, and lets the machine go", async (t) => {
    if (logind === undefined) return t.skip("dbus-daemon is not installed");
    const bell = logind;
    await until("the agent delays shutdowns", () => bell.held === 1);
    const slow =
      "trap 'while [ ! -e /shared/end ]; do sleep 0.1; done; exit 0' TERM; while :; do sleep 3600 & wait $!; done";
    const spec = { terminationGracePeriodSeconds: 30, volumes };
    site.write(
      manifest("slow", { ...spec, containers: [shell("main", slow, { volumeMounts: limited.volumeMounts })] }),
    );
    // Its turn comes after all others: the agent that is killed does not get to it.
    site.write(manifest("last", { priority: 2_000_000_000 }));
    await site.running("slow");
    await site.running("last");
    bell.announce(true);
    await site.event("Killing", "slow");
    await agent.end("SIGKILL");
    await until("its lock is gone with it", () => bell.held === 0);
    site.write(manifest("late"));
    await up();
    await site.pod("late", "is rejected", ({ state }) => state === "NodeShutdown");
    await until("the shutdown is delayed again", () => bell.held === 1);
    // Also the next agent goes on with it; the lock must outlast that.
    await site.event("Killing", "slow");
    assert.equal(bell.held, 1, "the shutdown waits for pods that still run");
    writeFileSync(join(shared, "end"), "");
    for (const name of ["slow", "last"]) await site.pod(name, "has ended", ({ phase }) => phase === "Failed");
    await until("the machine may go", () => bell.held === 0);
  });
});
