/** `kubelet up` and the commands around it, as a user meets them: the built agent, the embedded containerd, real pods. */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import type { PodEvent, PodExplanation, PodSummary } from "../../src/model/step.ts";
import { http } from "./support/http.ts";
import { forever, manifest, shell } from "./support/manifests.ts";
import { EXAMPLES, type Program } from "./support/program.ts";
import { type Agent, ids, isRunning, requireMachine, Site, shortName } from "./support/site.ts";
import { NO_TRACES, traces } from "./support/traces.ts";
import { SLOWNESS, until } from "./support/until.ts";

requireMachine();

/** These never end by themselves; `crashy` does, by design. */
const STABLE = ["web", "init-and-volume", "twice"];

/** Fails once, and then runs. */
const twice = manifest("twice", {
  containers: [
    shell("main", forever("if [ -e /data/seen ]; then echo second; else touch /data/seen; echo first; exit 3; fi"), {
      volumeMounts: [{ name: "data", mountPath: "/data" }],
    }),
  ],
  volumes: [{ name: "data", emptyDir: {} }],
});

describe("kubelet up", () => {
  const site = new Site();
  let agent: Agent;
  /** Of the pods at the moment at which the first agent stopped. */
  let left: unknown;

  before(async () => {
    cpSync(EXAMPLES, site.pods, { recursive: true });
    site.write(twice);
    agent = await site.up();
  });
  after(() => site.close());

  const stablePods = (): Promise<PodExplanation[]> => Promise.all(STABLE.map((name) => site.running(name)));
  /** What must not change while agents come and go. */
  const stableFacts = async (): Promise<Record<string, unknown>> =>
    Object.fromEntries((await stablePods()).map((pod) => [pod.name, { restarts: pod.restarts, ids: ids(pod) }]));
  const ended = (program: Program): Promise<number | null> => program.ended.then(({ code }) => code);

  it("the example pods come up, and the web pod answers on its own IP", async () => {
    const web = await site.running("web");
    for (const name of ["init-and-volume", "crashy"]) await site.running(name);
    const page = await until("the page", () => http(`http://${web.ip}:8080/`).catch(() => undefined));
    assert.equal(page.status, 200);
    assert.match(page.body, /<h1>Hello from web-/);
  });

  it("without a terminal it tells what happens in plain lines", async () => {
    await agent.says(/ web-\S+ {2}state Running, 1\/1 ready, IP \d+\.\d+\.\d+\.\d+\n/);
    assert.match(agent.stdout, new RegExp(`health {2}listening on 127\\.0\\.0\\.1:${agent.healthPort}\n`));
    assert.match(agent.stdout, new RegExp(`read-only {2}listening on 127\\.0\\.0\\.1:${agent.readOnlyPort}\n`));
    assert.match(agent.stdout, /kubelet {2}runtime containerd \S+ \(pid \d+\)\n/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours and cursor moves are what must not be there
    assert.doesNotMatch(agent.stdout, /\u001b/);
    assert.equal(agent.stderr, "");
  });

  it("the health port answers GET and HEAD", async () => {
    const url = `http://127.0.0.1:${agent.healthPort}/healthz`;
    assert.deepEqual(await http(url), { status: 200, body: "ok" });
    assert.deepEqual(await http(url, "HEAD"), { status: 200, body: "" });
    const verbose = await http(`${url}?verbose`);
    assert.equal(verbose.status, 200);
    assert.match(verbose.body, /^\[\+\]ping ok\n(\[\+\][a-z-]+ ok\n)*healthz check passed\n$/);
    assert.equal((await http(`http://127.0.0.1:${agent.healthPort}/pods`)).status, 404);
  });

  it("the read-only port shows pods and metrics", async () => {
    const web = await site.running("web");
    const base = `http://127.0.0.1:${agent.readOnlyPort}`;
    const { kind, items } = JSON.parse((await http(`${base}/pods`)).body);
    assert.equal(kind, "PodList");
    const shown = items.find((pod: { metadata: { uid: string } }) => pod.metadata.uid === web.uid);
    assert.deepEqual([shown.status.phase, shown.status.podIP], ["Running", web.ip]);
    assert.equal(items.length, 4);
    assert.match((await http(`${base}/metrics`)).body, /^kubelet_running_pods \d$/m);
    assert.deepEqual(await http(`${base}/healthz`), { status: 200, body: "ok" });
  });

  it("ps lists the pods as a table, as JSON and as YAML", async () => {
    await stablePods();
    const table = await site.run("ps");
    const [header, ...rows] = table.stdout.trimEnd().split("\n");
    assert.deepEqual(header?.trim().split(/\s+/).slice(0, 5), ["NAMESPACE", "NAME", "READY", "STATE", "RESTARTS"]);
    assert.equal(rows.length, 4);
    const web = await site.running("web");
    const row = rows.find((line) => line.includes("web-"))?.split(/\s{2,}/);
    assert.deepEqual(row?.slice(0, 6), ["default", web.name, "1/1", "Running", "0", web.ip]);
    for (const [format, read] of [
      ["json", (text: string) => JSON.parse(text)] as const,
      ["yaml", (text: string) => parse(text)] as const,
    ]) {
      const pods: PodSummary[] = read((await site.run("ps", "-o", format)).stdout);
      assert.deepEqual(
        pods.map(({ name }) => shortName(name)),
        ["crashy", "init-and-volume", "twice", "web"],
        format,
      );
    }
  });

  it("logs shows what a container wrote, all or the last lines, of any container, also of the instance before", async () => {
    // The first instance, too, runs for a moment.
    await site.pod("twice", "runs again", (pod) => isRunning(pod) && pod.restarts === 1);
    await until("its second word", async () => (await site.logs("twice")) === "second\n");
    assert.equal(await site.logs("twice", "--previous"), "first\n");
    assert.equal(await site.logs("init-and-volume", "-c", "prepare"), "preparing\n");
    const { ip } = await site.running("web");
    // The server logs who asked and what it answered.
    await http(`http://${ip}:8080/nothing`);
    await until("the request is logged", async () => (await site.logs("web")).includes("response:404"));
    const all = (await site.logs("web")).trimEnd().split("\n");
    assert.equal(all[0], "serving on port 8080");
    assert.equal(await site.logs("web", "--tail", "1"), `${all.at(-1)}\n`);
    assert.equal(await site.logs("web", "--tail=0"), "");
  });

  it("logs -f goes on with new lines until it is interrupted", async () => {
    const { ip } = await site.running("web");
    const follower = site.start("logs", "-f", "web");
    await follower.says("serving on port 8080\n");
    const lines = (): number => follower.stdout.match(/response:404\n/g)?.length ?? 0;
    const before = (await site.logs("web")).match(/response:404\n/g)?.length ?? 0;
    await http(`http://${ip}:8080/nothing`);
    await until("another line", () => lines() > before, { seen: () => follower.stdout });
    assert.equal((await follower.end("SIGINT")).code, 130);
  });

  it("logs -f ends with its container", async () => {
    const path = mkdtempSync(join(site.dir, "h-"));
    const script = "echo began; until [ -e /data/end ]; do sleep 0.1; done; echo over";
    const containers = [shell("main", script, { volumeMounts: [{ name: "data", mountPath: "/data" }] })];
    const volumes = [{ name: "data", hostPath: { path } }];
    site.write(manifest("brief", { restartPolicy: "Never", containers, volumes }));
    await site.running("brief");
    const follower = site.start("logs", "-f", "brief");
    await follower.says("began\n");
    writeFileSync(join(path, "end"), "");
    const { code, stdout } = await follower.ended;
    assert.deepEqual({ code, stdout }, { code: 0, stdout: "began\nover\n" });
    site.remove("brief");
    await site.gone("brief");
  });

  it("a name that fits no pod says so and tells near ones", async () => {
    for (const command of ["explain", "logs"]) {
      const { code, stdout, stderr } = await site.run(command, "wbe");
      assert.deepEqual({ code, stdout }, { code: 1, stdout: "" });
      assert.match(stderr, /^error: pod "wbe" not found; there is default\/web-\S+\n$/);
    }
    const { code, stderr } = await site.run("logs", "init-and-volume", "-c", "preparee");
    assert.equal(code, 1);
    assert.match(stderr, /has no container "preparee"; there is prepare\n$/);
    const none = await site.run("logs", "web", "--previous");
    assert.equal(none.code, 1);
    assert.match(none.stderr, /no previous instance/);
  });

  it("explain tells the steps, the containers and the events of a pod", async () => {
    const { stdout } = await site.run("explain", "twice");
    assert.match(stdout, /^Pod +default\/twice-\S+$/m);
    assert.match(stdout, /^State +Running, 1 of 1 ready, 1 restart, IP \d/m);
    assert.match(stdout, /^Steps$/m);
    assert.match(stdout, /^ {2}main +running/m);
    assert.match(stdout, /Started +Container started \(2 times\)/);
    const told: PodExplanation = JSON.parse((await site.run("explain", "twice", "-o", "json")).stdout);
    assert.equal(told.restarts, 1);
    const steps = told.steps.map(({ step }) => step);
    assert.deepEqual(
      ["admitted", "volumes", "sandbox", "create", "start"].filter((step) => !steps.some((known) => known === step)),
      [],
    );
    assert.deepEqual(told.errors, []);
  });

  it("events tells what happened, and with -w what happens", async () => {
    const table = (await site.run("events")).stdout;
    assert.match(table, /^LAST SEEN +TYPE +REASON +POD +MESSAGE$/m);
    assert.match(table, /Normal +Started +default\/web-\S+ httpd +Container started$/m);
    const all: PodEvent[] = JSON.parse((await site.run("events", "-o", "json")).stdout);
    assert.ok(all.some(({ reason, pod }) => reason === "Created" && pod.name.startsWith("init-and-volume-")));
    const watcher = site.start("events", "-w");
    await watcher.says("Container started");
    site.write(manifest("late"));
    await watcher.says(/Normal +Started +default\/late-/);
    await watcher.end("SIGINT");
    site.remove("late");
    await site.gone("late");
  });

  it("a second agent on the same state directory says who holds it, and ends", async () => {
    const second = await site.launch();
    const { code, stderr } = await second.ended;
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^error: .*agent\\.lock is held by process ${agent.pid} \\(kubelet.*\\)\n$`));
    assert.ok(isRunning(await site.running("web")));
  });

  it("an interrupt stops the agent within 2 s, and no pod", async () => {
    left = await stableFacts();
    const containers = await site.containers();
    const began = performance.now();
    const { code, stdout } = await agent.end("SIGINT");
    const took = performance.now() - began;
    assert.equal(code, 0);
    assert.ok(took < 2000 * SLOWNESS, `took ${took} ms`);
    assert.match(stdout, /The agent has stopped; \d pods keep running\./);
    const running = (list: typeof containers): string[] =>
      list
        .filter(({ state, name }) => state === "running" && name !== "worker")
        .map(({ id }) => id)
        .sort();
    assert.deepEqual(running(await site.containers()), running(containers));
    const { code: refused, stderr } = await site.run("ps");
    assert.equal(refused, 1);
    assert.match(stderr, /^error: no agent is running here/);
  });

  it("the next agent adopts the pods as they are", async () => {
    agent = await site.up();
    // The socket is served before this is printed.
    await agent.says(/\(pid \d+, found running\)/);
    assert.deepEqual(await stableFacts(), left);
    for (const { name, steps } of await stablePods()) {
      const made = steps.filter(({ step }) => ["sandbox", "create", "start", "kill", "terminate"].includes(step));
      assert.deepEqual(made, [], `nothing was done to ${name}`);
    }
    assert.equal(new Set((await site.sandboxes()).map(({ metadata }) => metadata.uid)).size, 4);
    assert.equal(await site.logs("twice", "--previous"), "first\n");
  });

  it("what ends the agent's terminal and its whole process group does not reach containerd or the pods", async () => {
    const facts = await stableFacts();
    await agent.end("SIGTERM");
    const { pid } = JSON.parse(readFileSync(site.layout.recordFile, "utf8"));
    for (const signal of ["SIGHUP", "SIGKILL"] as const) {
      agent = await site.up([], { detached: true });
      process.kill(-agent.pid, signal);
      assert.equal((await agent.ended).signal, signal === "SIGKILL" ? "SIGKILL" : null);
      assert.ok(existsSync(`/proc/${pid}`), `containerd is gone after ${signal}`);
    }
    agent = await site.up();
    assert.equal(JSON.parse(readFileSync(site.layout.recordFile, "utf8")).pid, pid);
    assert.deepEqual(await stableFacts(), facts);
  });

  it("down stops the agent that runs, and nothing is left", async () => {
    for (const [kind, found] of Object.entries(traces(site.layout))) assert.notDeepEqual(found, [], kind);
    assert.ok(!agent.isOver, `the agent ended by itself:\n${agent.stdout}\n${agent.stderr}`);
    const { code, stdout, stderr } = await site.run("down");
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
    assert.match(stdout, new RegExp(`stopping the agent \\(pid ${agent.pid}\\)\n`));
    assert.match(stdout, /Nothing is left of /);
    assert.equal(await ended(agent), 0);
    assert.deepEqual(traces(site.layout), NO_TRACES);
  });

  it("down may be repeated", async () => {
    assert.equal((await site.run("down")).code, 0);
    assert.equal(existsSync(site.state), false);
  });
});
