/** Probes of every kind but gRPC (which has its server in a unit test) on real containers, and over a restart of the agent. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Container, Probe } from "../../src/model/generated/types.ts";
import type { PodExplanation } from "../../src/model/step.ts";
import { http } from "../integration/support/http.ts";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, ids, requireExec, requireMachine, Site } from "../integration/support/site.ts";
import { pause } from "../integration/support/until.ts";

requireMachine();
requireExec();

/** Every second, and the first failure counts: a test should not take long. No machine is too slow for an answer. */
const quick = { periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 60 };
const isThere = (flag: string): Probe => ({ exec: { command: ["test", "-e", `/flags/${flag}`] }, ...quick });

describe("probes", () => {
  const site = new Site();
  const flags = join(site.dir, "flags");
  let agent: Agent;

  /** What containers see as `/flags/NAME`. */
  const raise = (name: string): void => writeFileSync(join(flags, name), "");
  const lower = (name: string): void => rmSync(join(flags, name));
  const run = (name: string, script: string, more: Partial<Container>): void => {
    const volumeMounts = [{ name: "flags", mountPath: "/flags" }];
    const volumes = [{ name: "flags", hostPath: { path: flags } }];
    site.write(manifest(name, { containers: [shell("main", script, { volumeMounts, ...more })], volumes }));
  };
  const ready = (name: string): Promise<PodExplanation> =>
    site.pod(name, "is ready", (pod) => pod.phase === "Running" && pod.readyContainers === 1);
  const unready = (name: string): Promise<PodExplanation> =>
    site.pod(name, "runs and is not ready", (pod) => pod.phase === "Running" && pod.readyContainers === 0);
  const readyCondition = async (name: string): Promise<string | undefined> => {
    const { items } = JSON.parse((await http(`http://127.0.0.1:${agent.readOnlyPort}/pods`)).body);
    const pod = items.find((one: { metadata: { name: string } }) => one.metadata.name.startsWith(`${name}-`));
    return pod?.status?.conditions?.find((one: { type: string }) => one.type === "Ready")?.status;
  };

  before(async () => {
    mkdirSync(join(flags, "www"), { recursive: true });
    agent = await site.up();
  });
  after(() => site.close());

  it("readiness by a command: ready with its success, not ready with its failure", async () => {
    run("by-command", forever(), { readinessProbe: isThere("ready") });
    await unready("by-command");
    await site.event("Unhealthy", "by-command", /^Readiness probe failed: /);
    assert.equal(await readyCondition("by-command"), "False");
    raise("ready");
    await ready("by-command");
    assert.equal(await readyCondition("by-command"), "True");
    lower("ready");
    await unready("by-command");
    assert.equal((await site.find("by-command"))?.restarts, 0);
    raise("ready");
    await ready("by-command");
  });

  it("readiness by HTTP, with a query and a named port", async () => {
    const httpGet = { port: "web", path: "/ok?from=probe" };
    const ports = [{ name: "web", containerPort: 8080 }];
    run("by-http", "exec httpd -f -p 8080 -h /flags/www", { ports, readinessProbe: { httpGet, ...quick } });
    await unready("by-http");
    await site.event("Unhealthy", "by-http", /^Readiness probe failed: HTTP probe failed with statuscode: 404$/);
    raise("www/ok");
    await ready("by-http");
  });

  it("readiness by a TCP connection", async () => {
    const serve = "until [ -e /flags/open ]; do sleep 0.1; done; exec httpd -f -p 9000 -h /flags";
    run("by-tcp", serve, { readinessProbe: { tcpSocket: { port: 9000 }, ...quick } });
    await unready("by-tcp");
    await site.event(
      "Unhealthy",
      "by-tcp",
      /^Readiness probe failed: dial tcp [\d.]+:9000: connect: connection refused$/,
    );
    raise("open");
    await ready("by-tcp");
  });

  it("liveness: a container that fails is killed and started again, and then left alone", async () => {
    // The flag goes before the container ends, too: the next one may be probed before its first command.
    const heal = "rm -f /flags/sick";
    run("mortal", `trap '${heal}; exit 0' TERM; ${heal}; while :; do sleep 3600 & wait $!; done`, {
      livenessProbe: { exec: { command: ["test", "!", "-e", "/flags/sick"] }, ...quick },
    });
    const first = await ready("mortal");
    await pause(2500);
    assert.equal((await site.find("mortal"))?.restarts, 0);
    raise("sick");
    const second = await site.pod("mortal", "is restarted", (pod) => pod.restarts === 1 && pod.readyContainers === 1);
    assert.notDeepEqual(ids(second), ids(first));
    await site.event("Killing", "mortal", /^Container main failed liveness probe, will be restarted$/);
    await pause(2500);
    assert.equal((await site.find("mortal"))?.restarts, 1);
  });

  it("startup: until it succeeds nothing else is probed, and the container is not ready", async () => {
    run("slow", forever(), {
      startupProbe: { ...isThere("begun"), failureThreshold: 60 },
      livenessProbe: isThere("begun"),
    });
    await unready("slow");
    await pause(3500);
    assert.equal((await site.find("slow"))?.restarts, 0);
    assert.equal(await readyCondition("slow"), "False");
    raise("begun");
    await ready("slow");
    lower("begun");
    await site.pod("slow", "is restarted", (pod) => pod.restarts === 1);
    raise("begun");
    await ready("slow");
  });

  it("another agent: nobody is restarted, and Ready never flips", async () => {
    const names = ["by-command", "by-http", "by-tcp", "mortal", "slow"];
    const facts = (): Promise<unknown[]> =>
      Promise.all(names.map(async (name) => [name, (await ready(name)).restarts, ids(await ready(name))]));
    const before = await facts();
    await agent.end("SIGKILL");
    agent = await site.launch();
    const seen = new Set<string>();
    let looks = 0;
    const stopAt = performance.now() + 6000;
    const isOver = (): boolean => performance.now() > stopAt && (looks >= 20 || performance.now() > stopAt + 60_000);
    while (!isOver()) {
      const pods = await site.list().catch(() => []);
      for (const { name, phase, readyContainers, ip } of pods) {
        // A pod that was not looked at yet has no status.
        if (ip !== "") seen.add(`${name} ${phase} ${readyContainers}`);
      }
      // A busy machine may start the agent for seconds.
      if (pods.filter(({ ip }) => ip !== "").length === names.length) looks++;
      await pause(20);
    }
    assert.equal(seen.size, names.length, [...seen].join("\n"));
    for (const one of seen) assert.match(one, /Running 1$/);
    assert.deepEqual(await facts(), before);
  });

  it("a probed pod goes without a trace", async () => {
    const { uid } = await ready("by-command");
    const folder = join(site.state, "kubelet/pods", uid);
    assert.ok(existsSync(join(folder, "probes.json")), "what must survive the agent is written down");
    site.remove("by-command");
    await site.gone("by-command");
    assert.equal(existsSync(folder), false);
  });
});
