/**
 * The private containerd of `kubelet up`, for real: needs root, containerd, the CNI plug-ins, busybox-static, catatonit.
 * CONTAINERD_BINARY names another containerd than that of PATH.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
} from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parse } from "yaml";
import { CriRuntime } from "../../src/adapters/cri/cri-runtime.ts";
import { CriProbe } from "../../src/adapters/embedded/cri-probe.ts";
import { findInPath, readRecord } from "../../src/adapters/embedded/daemon.ts";
import {
  DEMO_IMAGE,
  type EmbeddedDeps,
  EmbeddedRuntime,
  LOCAL_IMAGES,
  tearDown,
} from "../../src/adapters/embedded/index.ts";
import { layoutOf } from "../../src/adapters/embedded/layout.ts";
import { listProcesses, ownProcesses, readProcess, sandboxOf } from "../../src/adapters/embedded/processes.ts";
import { readSettings } from "../../src/adapters/embedded/state-dir.ts";
import { LinuxHost } from "../../src/adapters/host/index.ts";
import type { ContainerConfig, ContainerMount, SandboxConfig } from "../../src/adapters/runtime/port.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { fixed } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import { freePort } from "../support/free-port.ts";
import { freeze, thaw } from "../support/freeze.ts";
import { until } from "./support/until.ts";

const clock = new SystemClock();
const host = new LinuxHost({ clock });
const deps: EmbeddedDeps = { clock, log: silent, host };
const { signal } = new AbortController();
const containerdBinary = process.env["CONTAINERD_BINARY"];

function runtimeOf(stateDir: string): EmbeddedRuntime {
  return new EmbeddedRuntime(deps, { stateDir, containerdBinary });
}

/** What the agent is to containerd: starts it and goes on running. */
async function actAsAgent(stateDir: string): Promise<void> {
  const { pid, adopted } = await runtimeOf(stateDir).start({ signal, progress: () => undefined });
  process.stdout.write(`${JSON.stringify({ pid, adopted })}\n`);
  await clock.sleep(60_000);
}

function alive(pid: number): boolean {
  return readProcess(pid) !== undefined;
}

function httpGet(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = get(url, { timeout: 5000 }, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on("end", () => resolve(body)).on("error", reject);
    });
    call.on("timeout", () => call.destroy(new Error("no answer"))).on("error", reject);
  });
}

const hostPort = await freePort();

function sandboxConfig(stateDir: string): SandboxConfig {
  const { cgroupRoot } = layoutOf({ stateDir });
  return {
    metadata: { name: "web", namespace: "default", uid: "0123456789abcdef0123456789abcdef", attempt: 0 },
    hostname: "web",
    logDirectory: join(stateDir, "logs", "pods", "default_web_0"),
    portMappings: [{ protocol: "TCP", containerPort: 8080, hostPort, hostIp: "" }],
    labels: {},
    annotations: {},
    linux: {
      cgroupParent: `${cgroupRoot}/kubepods/pod0`,
      sysctls: {},
      security: {
        namespaces: { network: "pod", pid: "container", ipc: "pod" },
        privileged: false,
        supplementalGroups: [],
        seccomp: { type: "unconfined" },
      },
    },
  };
}

/** The part of a manifest that this test acts on. */
interface ExamplePod {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly initContainers?: readonly ExampleContainer[];
    readonly containers: readonly ExampleContainer[];
  };
}

interface ExampleContainer {
  readonly name: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly volumeMounts?: readonly { readonly mountPath: string }[];
  readonly ports?: readonly { readonly containerPort: number }[];
}

function mountOf(hostPath: string, containerPath: string): ContainerMount {
  return { hostPath, containerPath, readonly: false, propagation: "private" };
}

const webContainer: ContainerConfig = {
  name: "httpd",
  attempt: 0,
  image: { ref: DEMO_IMAGE, userSpecified: DEMO_IMAGE },
  command: ["/bin/sh", "-c"],
  args: [`trap 'echo bye > /out/bye; exit 0' TERM; echo hello > /www/index.html; httpd -f -p 8080 -h /www & wait $!`],
  workingDir: "",
  envs: [],
  mounts: [],
  devices: [],
  cdiDevices: [],
  labels: {},
  annotations: {},
  logPath: "httpd.log",
  stdin: false,
  stdinOnce: false,
  tty: false,
  linux: {
    resources: {},
    security: {
      namespaces: { network: "pod", pid: "container", ipc: "pod" },
      privileged: false,
      readonlyRootfs: false,
      noNewPrivs: false,
      addCapabilities: [],
      dropCapabilities: [],
      supplementalGroups: [],
      maskedPaths: [],
      readonlyPaths: [],
      seccomp: { type: "unconfined" },
    },
  },
};

function criOf(stateDir: string): CriRuntime {
  const { endpoint } = runtimeOf(stateDir);
  return new CriRuntime({ clock, log: silent }, { endpoint, requestTimeoutMs: fixed(30_000) });
}

/** Everything on the machine that carries this state directory's names, or that was seen to be its pods'. */
async function traces(stateDir: string, seen: { links: string[]; shimSockets: string[] }): Promise<string[]> {
  const layout = layoutOf({ stateDir });
  const found: string[] = [];
  for (const { target } of host.mountTable()) if (target.startsWith(stateDir)) found.push(`mount ${target}`);
  const own = ownProcesses(listProcesses(), layout);
  for (const { pid } of [...own.containerd, ...own.shims, ...own.workload]) found.push(`process ${pid}`);
  for (const { pid, argv } of listProcesses())
    if (argv.some((word) => word.includes(stateDir))) found.push(`process ${pid}`);
  for (const { target, type } of host.mountTable()) {
    if (type.startsWith("cgroup") && existsSync(join(target, layout.cgroupRoot))) found.push(`cgroup in ${target}`);
  }
  for (const link of [layout.bridge, ...seen.links])
    if (existsSync(`/sys/class/net/${link}`)) found.push(`link ${link}`);
  for (const path of seen.shimSockets) if (existsSync(path)) found.push(path);
  for (const family of ["iptables-save", "ip6tables-save"]) {
    const { stdout } = await host.exec(family, [], { signal });
    for (const line of stdout.split("\n")) {
      // Chains have counters, in which any number may stand.
      if (line.startsWith(":")) continue;
      const words = line.split(/[\s:,"]+/);
      if (line.includes(layout.name) || line.includes(layout.bridge) || words.includes(`${hostPort}`)) found.push(line);
    }
  }
  for (const directory of ["/var/log/containers", "/var/lib/cni/results"]) {
    if (!existsSync(directory)) continue;
    for (const name of readdirSync(directory))
      if (name.includes(layout.name) || name.includes(layout.hash)) found.push(name);
  }
  if (existsSync(stateDir)) found.push(stateDir);
  return found;
}

async function suite(t: TestContext): Promise<void> {
  const stateDir = await mkdtemp(join(tmpdir(), "kts-"));
  const layout = layoutOf({ stateDir });
  const progress = (): void => undefined;
  t.after(async () => {
    await tearDown(deps, { stateDir, progress });
    await rm(stateDir, { recursive: true, force: true });
    await rm(out, { recursive: true });
  });
  let pid = 0;
  let container = "";
  const out = await mkdtemp(join(tmpdir(), "kts-out-"));
  const seen = { links: [] as string[], shimSockets: [] as string[] };

  await t.test("a first start brings up CRI, network and both local images, cut off from its parent", async () => {
    const started = await runtimeOf(stateDir).start({ signal, progress });
    assert.equal(started.adopted, false);
    pid = started.pid;
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
    assert.equal(Number(fields[3]), pid, "leads a session of its own");
    for (const descriptor of [1, 2]) assert.equal(readlinkSync(`/proc/${pid}/fd/${descriptor}`), layout.logFile);
    const groups = readFileSync(`/proc/${pid}/cgroup`, "latin1").trim().split("\n");
    assert.ok(
      groups.some((line) => line.endsWith(layout.runtimeCgroup)),
      groups.join(),
    );
    const probe = new CriProbe(layout.socket);
    for (const image of LOCAL_IMAGES) assert.ok(await probe.hasImage(image, { signal }), image);
    probe.close();
  });

  await t.test("a second start adopts the same process", async () => {
    assert.deepEqual(await runtimeOf(stateDir).start({ signal, progress }), { adopted: true, pid });
  });

  await t.test("a pod from the local images answers on its own IP and on its host port", async () => {
    const cri = criOf(stateDir);
    mkdirSync(sandboxConfig(stateDir).logDirectory, { recursive: true });
    const sandboxId = await cri.runSandbox(sandboxConfig(stateDir), "", { signal });
    container = await cri.createContainer(
      { sandboxId, config: { ...webContainer, mounts: [mountOf(out, "/out")] }, sandbox: sandboxConfig(stateDir) },
      { signal },
    );
    await cri.startContainer(container, { signal });
    const { ips } = await cri.sandboxStatus(sandboxId, { signal });
    assert.equal(
      ips[0]?.split(".").slice(0, 3).join("."),
      readSettings(layout)?.podCidr.split(".").slice(0, 3).join("."),
    );
    await until("page", async () => (await httpGet(`http://${ips[0]}:8080/`).catch(() => "")) === "hello\n");
    await until(
      "host port",
      async () => (await httpGet(`http://127.0.0.1:${hostPort}/`).catch(() => "")) === "hello\n",
    );
    cri.close();
    seen.links = readdirSync(`/sys/class/net/${layout.bridge}/brif`);
    assert.equal(seen.links.length, 1);
    if (existsSync("/run/containerd/s")) {
      // Those of our pod: the bundle says which.
      const bundle = join(layout.containerdState, "io.containerd.runtime.v2.task", "k8s.io", sandboxId);
      const address = readFileSync(
        join(bundle, existsSync(join(bundle, "address")) ? "address" : "bootstrap.json"),
        "utf8",
      );
      seen.shimSockets = [...address.matchAll(/\/[^"]*\/s\/[0-9a-f]{64}/g)].map(([path]) => path);
      assert.equal(seen.shimSockets.length, 1);
    }
  });

  const containerState = async (): Promise<string> => {
    const cri = criOf(stateDir);
    try {
      return (await cri.containerStatus(container, { signal })).state;
    } finally {
      cri.close();
    }
  };

  await t.test("the example pods run from the demo image and stop when told to", async () => {
    const directory = join(process.cwd(), "examples", "pods");
    const cri = criOf(stateDir);
    for (const file of readdirSync(directory)) {
      const { metadata, spec } = parse(readFileSync(join(directory, file), "utf8")) as ExamplePod;
      const volume = await mkdtemp(join(out, "volume-"));
      const plain = sandboxConfig(stateDir);
      const sandbox = { ...plain, metadata: { ...plain.metadata, ...metadata, uid: file }, portMappings: [] };
      const sandboxId = await cri.runSandbox(sandbox, "", { signal });
      for (const [i, example] of [...(spec.initContainers ?? []), ...spec.containers].entries()) {
        const mounts = (example.volumeMounts ?? []).map(({ mountPath }) => mountOf(volume, mountPath));
        const { name, command, args } = example;
        const config = { ...webContainer, name, command, args, mounts, logPath: `${name}.log` };
        const id = await cri.createContainer({ sandboxId, config, sandbox }, { signal });
        await cri.startContainer(id, { signal });
        const isInit = i < (spec.initContainers?.length ?? 0);
        const log = join(sandbox.logDirectory, `${name}.log`);
        await until(`${file} ${name} speaks`, () => readFileSync(log, "utf8") !== "");
        // The server speaks before it handles TERM, and serves after.
        const { ips } = await cri.sandboxStatus(sandboxId, { signal });
        for (const { containerPort } of example.ports ?? []) {
          const url = `http://${ips[0]}:${containerPort}/`;
          await until(`${file} ${name} serves`, async () => (await httpGet(url).catch(() => "")) !== "");
        }
        if (isInit)
          await until("init done", async () => (await cri.containerStatus(id, { signal })).state === "exited");
        else await cri.stopContainer(id, 10, { signal });
        const { exitCode } = await cri.containerStatus(id, { signal });
        assert.equal(exitCode, 0, `${file} ${name}: ${readFileSync(log, "utf8")}`);
      }
      await cri.stopSandbox(sandboxId, { signal });
      await cri.removeSandbox(sandboxId, { signal });
    }
    cri.close();
  });

  await t.test("it outlives the agent that started it, also when the whole process group is interrupted", async () => {
    process.kill(pid, "SIGKILL");
    await until("containerd is dead", () => !alive(pid));
    const self = process.argv[1] ?? "";
    const agent = spawn(process.execPath, ["--import", "tsx", self, "agent", stateDir], {
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = new Promise((resolve) => agent.once("exit", resolve));
    const line = await new Promise<string>((resolve, reject) => {
      agent.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString()));
      agent.once("error", reject);
      agent.once("exit", () => reject(new Error("the agent ended before containerd was up")));
    });
    const started = JSON.parse(line);
    assert.equal(started.adopted, false);
    process.kill(-(agent.pid ?? 0), "SIGINT");
    await ended;
    pid = started.pid;
    assert.ok(alive(pid));
    assert.deepEqual(await runtimeOf(stateDir).start({ signal, progress }), { adopted: true, pid });
    assert.equal(await containerState(), "running");
  });

  await t.test("killed, it is started again by its supervisor, and the pod runs on", async () => {
    const stop = new AbortController();
    const supervised = runtimeOf(stateDir).supervise(stop.signal);
    const before = pid;
    for (let death = 0; death < 2; death++) {
      process.kill(pid, "SIGKILL");
      const old = pid;
      await until("another containerd", () => {
        pid = ownProcesses(listProcesses(), layout).containerd[0]?.pid ?? old;
        return pid !== old && readRecord(layout)?.pid === pid;
      });
    }
    const { adopted, pid: now } = await runtimeOf(stateDir).start({ signal, progress });
    assert.deepEqual({ adopted, now }, { adopted: true, now: pid });
    assert.notEqual(pid, before);
    assert.equal(await containerState(), "running");
    stop.abort();
    await supervised;
    assert.ok(alive(pid), "the end of supervision is not the end of containerd");
  });

  await t.test(
    "a shim without a sandbox, as a killed containerd leaves one, is ended; that of the pod stays",
    async () => {
      const shims = (): string[] => ownProcesses(listProcesses(), layout).shims.map((shim) => sandboxOf(shim) ?? "");
      const before = shims();
      // A containerd that is killed between the start of a shim and the creation of its task leaves just this.
      const bundle = join(layout.containerdState, "io.containerd.runtime.v2.task", "k8s.io", "lost");
      mkdirSync(bundle);
      await writeFile(join(bundle, "config.json"), "{}");
      // A shim ends soon if nobody reads its log.
      execFileSync("mkfifo", [join(bundle, "log")]);
      const reader = openSync(join(bundle, "log"), constants.O_RDWR);
      const place = ["-namespace", "k8s.io", "-id", "lost", "-address", layout.socket];
      execFileSync("containerd-shim-runc-v2", [...place, "-publish-binary", "containerd", "start"], { cwd: bundle });
      await until("the shim runs", () => shims().includes("lost"), { limitMs: 5000 });
      const stop = new AbortController();
      const supervised = runtimeOf(stateDir).supervise(stop.signal);
      await until("the shim has ended", () => !shims().includes("lost"), { limitMs: 30_000 });
      assert.deepEqual(shims(), before);
      assert.equal(await containerState(), "running");
      stop.abort();
      await supervised;
      closeSync(reader);
      await rm(bundle, { recursive: true });
    },
  );

  await t.test("a lost record does not make a second containerd", async () => {
    await rm(layout.recordFile);
    const started = await runtimeOf(stateDir).start({ signal, progress });
    assert.equal(ownProcesses(listProcesses(), layout).containerd.length, 1);
    pid = started.pid;
    assert.equal(await containerState(), "running");
  });

  await t.test(
    "a containerd that is still loading its shims is not interrupted, and waits for a slow shim",
    async () => {
      const [shim] = ownProcesses(listProcesses(), layout).shims;
      assert.ok(shim !== undefined);
      await freeze(shim.pid);
      process.kill(pid, "SIGKILL");
      await until("containerd is dead", () => !alive(pid));
      // The agent that starts the next one is killed before it has written the record.
      const first = new AbortController();
      const launched = runtimeOf(stateDir).start({ signal: first.signal, progress });
      await until("containerd loads", () => existsSync(layout.recordFile) && readRecord(layout)?.pid !== pid);
      await rm(layout.recordFile);
      first.abort(new Error("killed"));
      await assert.rejects(launched);
      const [loading] = ownProcesses(listProcesses(), layout).containerd;
      const second = runtimeOf(stateDir).start({ signal, progress });
      // Longer than the 5 s after which containerd by default takes a shim for dead and kills its containers.
      await clock.sleep(6000);
      thaw(shim.pid);
      pid = (await second).pid;
      assert.equal(pid, loading?.pid, "it was adopted");
      assert.equal(await containerState(), "running");
    },
  );

  await t.test("tearDown with a dead containerd and a running pod leaves nothing behind", async () => {
    const links = "/var/log/containers";
    mkdirSync(links, { recursive: true });
    symlinkSync(join(stateDir, "logs", "pods", "x.log"), join(links, `kts-test-${layout.hash}.log`));
    process.kill(pid, "SIGKILL");
    await until("containerd is dead", () => !alive(pid));
    assert.notDeepEqual(await traces(stateDir, seen), []);
    const { removed, left } = await tearDown(deps, { stateDir, progress });
    assert.deepEqual(left, []);
    assert.ok(removed.includes("1 pod"), removed.join());
    assert.equal(readFileSync(join(out, "bye"), "utf8"), "bye\n", "the container was told to stop");
    assert.deepEqual(await traces(stateDir, seen), []);
  });

  await t.test("tearDown may be repeated", async () => {
    const { removed, left } = await tearDown(deps, { stateDir, progress });
    // The empty chains of port mappings belong to all networks: those of a suite beside this one are found, too.
    const own = removed.filter((what) => !what.endsWith("iptables rules"));
    assert.deepEqual({ removed: own, left }, { removed: [], left: [] });
    assert.deepEqual(await traces(stateDir, seen), []);
  });

  await t.test("tearDown of a living containerd leaves nothing behind either", async () => {
    await runtimeOf(stateDir).start({ signal, progress });
    const { left } = await tearDown(deps, { stateDir, progress });
    assert.deepEqual(left, []);
    assert.deepEqual(await traces(stateDir, seen), []);
  });

  await t.test("after a restart of the machine old pods are known to be gone and new ones run", async () => {
    await runtimeOf(stateDir).start({ signal, progress });
    const cri = criOf(stateDir);
    mkdirSync(sandboxConfig(stateDir).logDirectory, { recursive: true });
    const old = await cri.runSandbox(sandboxConfig(stateDir), "", { signal });
    // What a restart takes away: processes, mounts, interfaces. What it leaves: the state directory.
    const { containerd, shims, workload } = ownProcesses(listProcesses(), layout);
    const all = [...containerd, ...shims, ...workload].map((one) => one.pid);
    for (const one of all) process.kill(one, "SIGKILL");
    await until("all is dead", () => !all.some(alive));
    const mounts = host.mountTable().flatMap(({ target }) => (target.startsWith(`${stateDir}/`) ? [target] : []));
    await host.exec("umount", mounts.reverse(), { signal });
    await host.exec("ip", ["link", "delete", layout.bridge], { signal });
    await writeFile(layout.recordFile, JSON.stringify({ ...readRecord(layout), bootId: "an earlier one" }));

    const started = await runtimeOf(stateDir).start({ signal, progress });
    assert.equal(started.adopted, false);
    assert.equal((await cri.sandboxStatus(old, { signal })).state, "notReady");
    await cri.stopSandbox(old, { signal });
    await cri.removeSandbox(old, { signal });
    const fresh = await cri.runSandbox(sandboxConfig(stateDir), "", { signal });
    assert.equal((await cri.sandboxStatus(fresh, { signal })).state, "ready");
    cri.close();
    assert.deepEqual((await tearDown(deps, { stateDir, progress })).left, []);
    assert.deepEqual(await traces(stateDir, seen), []);
  });

  await t.test("a directory with somebody's files is neither taken nor removed", async () => {
    mkdirSync(stateDir);
    await writeFile(join(stateDir, "thesis.txt"), "mine");
    await assert.rejects(runtimeOf(stateDir).start({ signal, progress }), { code: "ForeignDirectory" });
    const { left } = await tearDown(deps, { stateDir, progress });
    assert.equal(left.length, 1);
    assert.equal(readFileSync(join(stateDir, "thesis.txt"), "utf8"), "mine");
  });

  await t.test("a containerd that cannot start says why", async () => {
    const other = await mkdtemp(join(tmpdir(), "kts-"));
    try {
      const broken = new EmbeddedRuntime(deps, { stateDir: other, containerdBinary: "/bin/false" });
      await assert.rejects(broken.start({ signal, progress }), { code: "UnsupportedVersion" });
    } finally {
      assert.deepEqual((await tearDown(deps, { stateDir: other, progress })).left, []);
    }
  });
}

/** What the machine lacks for this suite, if anything. */
function missing(): string | undefined {
  const programs = [containerdBinary ?? "containerd", "runc", "ctr", "iptables", "ip", "busybox", "catatonit"];
  const absent = programs.filter((program) => findInPath(program, process.env["PATH"]) === undefined);
  if (process.getuid?.() !== 0) absent.unshift("root");
  return absent.length === 0 ? undefined : `needs ${absent.join(", ")}`;
}

const lack = missing();
if (lack !== undefined) {
  process.stdout.write(`${lack}\n`);
  process.exitCode = 77;
} else if (process.argv[2] === "agent") void actAsAgent(process.argv[3] ?? "");
else void test("the embedded runtime", suite);
