/** What breaks around the agent: containerd, its terminal, its ports, its log, a sandbox. Pods go on. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { readProcess } from "../../src/adapters/embedded/processes.ts";
import type { PodExplanation } from "../../src/model/step.ts";
import { http } from "../integration/support/http.ts";
import { FOREVER, forever, manifest, shell } from "../integration/support/manifests.ts";
import { KUBELET, kubelet, Program } from "../integration/support/program.ts";
import { type Agent, ids, NODE, requireMachine, Site } from "../integration/support/site.ts";
import { pidsInCgroup } from "../integration/support/traces.ts";
import { pause, until } from "../integration/support/until.ts";
import { freePort } from "../support/free-port.ts";

requireMachine();

const site = new Site();
let crashes = 0;

before(async () => {
  // The log cannot be written: every write says that no space is left.
  mkdirSync(site.state, { mode: 0o750 });
  symlinkSync("/dev/full", join(site.state, "kubelet.log"));
  site.write(manifest("steady", { containers: [shell("a", FOREVER), shell("b", FOREVER)] }));
});
after(() => site.close());

async function isHealthy({ healthPort }: Pick<Agent, "healthPort">): Promise<void> {
  assert.deepEqual(await http(`http://127.0.0.1:${healthPort}/healthz`), { status: 200, body: "ok" });
}

/** What must not change, whatever breaks. */
async function steady(): Promise<unknown> {
  const pod = await site.running("steady");
  return { uid: pod.uid, ip: pod.ip, restarts: pod.restarts, ids: ids(pod) };
}

/** Writes a new pod that crashes once, waits until it runs again, and removes it: the ring goes round. */
async function aCrashIsRestarted(): Promise<PodExplanation> {
  const name = `crash-${++crashes}`;
  const script = forever("[ -e /data/seen ] || { touch /data/seen; exit 1; }");
  const main = shell("main", script, { volumeMounts: [{ name: "data", mountPath: "/data" }] });
  site.write(manifest(name, { containers: [main], volumes: [{ name: "data", emptyDir: {} }] }));
  const pod = await site.pod(name, "was restarted", (one) => one.restarts === 1 && one.readyContainers === 1);
  site.remove(name);
  await site.gone(name);
  return pod;
}

function containerdPid(): number {
  return JSON.parse(readFileSync(site.layout.recordFile, "utf8")).pid;
}

describe("the runtime", () => {
  let agent: Agent;
  before(async () => {
    agent = await site.up(["-v=4"]);
  });
  after(() => agent.end("SIGTERM"));

  it("the agent works with a log that cannot be written", async () => {
    await steady();
    await aCrashIsRestarted();
    await isHealthy(agent);
  });

  it("containerd killed: it is started again, pods are untouched, new ones start", async () => {
    const before = await steady();
    for (let death = 0; death < 2; death++) {
      const pid = containerdPid();
      process.kill(pid, "SIGKILL");
      await isHealthy(agent);
      await until("another containerd", () => containerdPid() !== pid);
      await aCrashIsRestarted();
    }
    assert.deepEqual(await steady(), before);
    const { steps } = await site.running("steady");
    const done = steps.filter(({ step }) => ["sandbox", "create", "start", "kill"].includes(step));
    assert.equal(done.length, 5, "one sandbox, two creates, two starts");
  });

  it("a pod removed while containerd is away goes as soon as it is back", async () => {
    site.write(manifest("unlucky"));
    const { uid } = await site.running("unlucky");
    const pid = containerdPid();
    process.kill(pid, "SIGKILL");
    await until("containerd is dead", () => readProcess(pid) === undefined);
    site.remove("unlucky");
    await site.gone("unlucky");
    assert.notEqual(containerdPid(), pid);
    assert.deepEqual(await site.sandboxes(uid), []);
  });

  it("a sandbox whose process was killed is replaced, with its containers", async () => {
    site.write(manifest("shaken"));
    const before = await site.running("shaken");
    const [sandbox] = await site.sandboxes(before.uid);
    const pids = pidsInCgroup(`/${sandbox?.id}`);
    assert.equal(pids.length, 1);
    process.kill(pids[0] ?? 0, "SIGKILL");
    const isNew = ({ containers: [one] }: PodExplanation): boolean => one?.id !== before.containers[0]?.id;
    const now = await site.pod("shaken", "runs anew", (pod) => isNew(pod) && pod.readyContainers === 1);
    assert.equal(now.uid, before.uid);
    const ready = (await site.sandboxes(before.uid)).filter(({ state }) => state === "ready");
    assert.equal(ready.length, 1);
    assert.notEqual(ready[0]?.id, sandbox?.id);
    assert.equal((await site.containers(before.uid)).filter(({ state }) => state === "running").length, 1);
    await site.event("SandboxChanged", "shaken");
    site.remove("shaken");
    await site.gone("shaken");
  });
});

describe("the reader of the output", () => {
  it("is killed: pods and health go on", async () => {
    const agent = await site.up();
    const before = await steady();
    agent.child.stdout?.destroy();
    agent.child.stderr?.destroy();
    await aCrashIsRestarted();
    await isHealthy(agent);
    assert.deepEqual(await steady(), before);
    assert.equal(agent.isOver, false);
    agent.child.kill("SIGTERM");
    await until("the agent ends", () => agent.isOver);
  });

  it("does not read, and the pipe is full: pods and health go on, and the agent can be stopped", async () => {
    const path = join(site.dir, "pipe");
    assert.equal(spawnSync("mkfifo", [path]).status, 0);
    const filler = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    fill(filler);
    // A description of its own, which blocks.
    const output = openSync(path, constants.O_RDWR);
    const agent = await site.up([], { stdio: ["ignore", output, output] });
    await aCrashIsRestarted();
    await isHealthy(agent);
    agent.child.kill("SIGINT");
    await until("the agent ends", () => agent.isOver);
    for (const fd of [filler, output]) closeSync(fd);
  });

  it("is a terminal stopped with Ctrl-S for 10 s: pods and health go on, and Ctrl-Q shows them", async () => {
    const [healthPort, readOnlyPort] = [await freePort(), await freePort()];
    const ports = `--healthz-port ${healthPort} --read-only-port ${readOnlyPort}`;
    const place = `--pods ${site.pods} --state-dir ${site.state} --hostname-override ${NODE}`;
    const command = `exec ${KUBELET} up ${place} ${ports}`;
    const terminal = new Program(["script", "--quiet", "--return", "--command", command, "/dev/null"], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    await until("the live view", () => /steady-/.test(terminal.stdout), { seen: () => terminal.stdout });
    await site.running("steady");
    terminal.child.stdin?.write("\x13");
    // The key reaches the terminal a moment later: once a pod came and went unseen, nothing may come through.
    let shown = -1;
    await until("the terminal is stopped", async () => {
      shown = terminal.stdout.length;
      await aCrashIsRestarted();
      return terminal.stdout.length === shown;
    });
    const over = performance.now() + 10_000;
    await aCrashIsRestarted();
    while (performance.now() < over) {
      await isHealthy({ healthPort });
      await pause(250);
    }
    assert.equal(terminal.stdout.length, shown, "the terminal was stopped");
    terminal.child.stdin?.write("\x11");
    await until("it goes on", () => terminal.stdout.length > shown);
    terminal.child.stdin?.write("\x03");
    assert.equal((await terminal.ended).code, 0);
    assert.match(terminal.stdout, /The agent has stopped; 1 pod keeps running\./);
  });
});

describe("the machine", () => {
  it("has its health port taken: it says by whom, pods run, and it comes when the port is free", async () => {
    const taken = await freePort();
    const holder = await listen(taken);
    const agent = await site.up([`--healthz-port=${taken}`]);
    const port = new RegExp(
      `health {2}port ${taken} \\(--healthz-port\\) is in use by \\S+ \\(pid ${process.pid}\\)\n`,
    );
    await agent.says(port);
    await aCrashIsRestarted();
    await new Promise((resolve) => holder.close(resolve));
    await agent.says(`health  listening on 127.0.0.1:${taken}\n`);
    await isHealthy({ healthPort: taken });
    await agent.end("SIGTERM");
  });

  it("gives no root: one clear line, and nothing is made", async (t) => {
    // A copy, since the checkout may lie where others cannot read.
    const place = mkdtempSync(join(tmpdir(), "k-"));
    for (const directory of [dirname(place), place]) chmodSync(directory, 0o755);
    for (const part of ["bin", "dist"]) {
      cpSync(join(dirname(KUBELET), "..", part), join(place, part), { recursive: true });
    }
    const state = join(site.dir, "none");
    const who = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if ((await new Program([...who, "true"]).ended).code !== 0) return t.skip("only root may run anything here");
    for (const command of [["up", "--pods", site.pods], ["down"]]) {
      const args = [...who, join(place, "bin/kubelet"), ...command, "--state-dir", state];
      const { code, stdout, stderr } = await new Program(args, { env: { ...process.env, HOME: place } }).ended;
      assert.equal(code, 1);
      assert.match(stderr, /^error: kubelet (up|down) needs root: [^\n]*\n$/);
      assert.doesNotMatch(stdout, /error/);
    }
    assert.equal(existsSync(state), false);
    rmSync(place, { recursive: true });
  });

  it("has no such manifests directory yet: pods come with it", async () => {
    // A whole agent beside the other, on a state directory of its own.
    const other = new Site();
    rmSync(other.pods, { recursive: true });
    try {
      const agent = await other.up();
      assert.deepEqual(await other.list(), []);
      mkdirSync(other.pods);
      other.write(manifest("late"));
      await other.running("late");
      await agent.end("SIGTERM");
    } finally {
      await other.close();
    }
  });

  it("was given a directory that is somebody's: nothing is touched", async () => {
    const foreign = mkdtempSync(join(site.dir, "f-"));
    mkdirSync(join(foreign, "thesis"));
    const { code, stderr } = await kubelet(["up", "--pods", site.pods, "--state-dir", foreign]);
    assert.equal(code, 1);
    assert.match(stderr, /^error: .*not a state directory of kubelet-ts and not empty \(thesis\)\n$/);
    assert.ok(existsSync(join(foreign, "thesis")));
  });
});

/** Fills a pipe to the last byte. */
function fill(fd: number): void {
  for (const size of [65536, 1]) {
    try {
      for (;;) writeSync(fd, Buffer.alloc(size, "x"));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "EAGAIN"); // what a full pipe answers
    }
  }
}

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
