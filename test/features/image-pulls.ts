/** Pulls from a real registry: what its faults become, the queue, the progress, and what a pull nobody needs costs. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { connectRuntime, type RuntimeConnection } from "../../src/adapters/connect-runtime.ts";
import { findInPath } from "../../src/adapters/embedded/daemon.ts";
import { ImagePuller, type PullJournal } from "../../src/images/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { fixed, LiveValue } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { PullCredential } from "../../src/model/pull-credential.ts";
import { StartError } from "../../src/model/start-error.ts";
import type { PodEvent, PodExplanation } from "../../src/model/step.ts";
import { FOREVER, manifest } from "../integration/support/manifests.ts";
import { PlainAgent } from "../integration/support/plain-agent.ts";
import { KUBELET, Program } from "../integration/support/program.ts";
import { NODE, requireMachine, Site } from "../integration/support/site.ts";
import { pause, until } from "../integration/support/until.ts";
import { TestContainerd } from "../support/containerd.ts";
import { TestAuthority } from "../support/control-plane-pki.ts";
import { freePort } from "../support/free-port.ts";
import { pod } from "../support/pods.ts";
import { REGISTRY_USER, TestRegistry, whyNoRegistry } from "../support/registry.ts";
import { fillingLayer, shellLayer } from "../support/registry-image.ts";
import { type RegistryFault, RegistryProxy, type SeenRequest } from "../support/registry-proxy.ts";

requireMachine();
const missing = whyNoRegistry();
if (missing !== undefined) {
  process.stdout.write(`${missing}\n`);
  process.exit(77);
}

type PullStep = ReturnType<PullJournal["begin"]>;
const MIB = 1024 * 1024;
const isBlob = ({ method, path }: SeenRequest): boolean => method === "GET" && path.includes("/blobs/");
const isManifest = ({ path }: SeenRequest): boolean => path.includes("/manifests/");
const isFilling = (digests: readonly string[]) => (seen: SeenRequest) =>
  isBlob(seen) && digests.some((digest) => seen.path.includes(digest));

const dir = mkdtempSync(join(tmpdir(), "pulls-"));
const authority = new TestAuthority();
let registry: TestRegistry;
before(async () => {
  registry = await TestRegistry.start(join(dir, "registry"), authority);
});
after(async () => {
  await registry?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const containerd2 = process.env["CONTAINERD2_BIN_DIR"] ?? "";
/** Each fault on the system's containerd; those that depend on how a runtime receives blobs also on a newer one. */
const RUNTIMES = [
  { runtime: "the system's containerd", skip: false, options: {} },
  {
    runtime: "containerd 2",
    skip: containerd2 === "" && "CONTAINERD2_BIN_DIR names none",
    options: { binDir: containerd2 },
    only: /^(cut|wrong-digest|stalled|silent|endless):/,
  },
] as const;

for (const each of RUNTIMES) {
  describe(`faults of a registry with TLS and a password, ${each.runtime}`, { skip: each.skip }, () => faults(each));
}

function faults({ options: runtime, ...rest }: (typeof RUNTIMES)[number]): void {
  const isLeftOut = (name: string): boolean => "only" in rest && !rest.only.test(name);
  let containerd: TestContainerd;
  let proxy: RegistryProxy;
  let connection: RuntimeConnection;
  const agent = manyListeners();
  const clock = new SystemClock();
  const options = new LiveValue({ parallel: 0, qps: 0, burst: 0, progressTimeoutMs: 0 });
  let password: string = REGISTRY_USER.password;
  let puller: ImagePuller;

  before(async () => {
    containerd = await TestContainerd.start({ ...runtime, registryCa: authority.certificate });
    proxy = await RegistryProxy.start(registry, authority);
    containerd.trust(proxy.host);
    const { endpoint } = containerd;
    connection = connectRuntime({ clock, log: silent }, { endpoint, requestTimeoutMs: fixed(30_000) });
    const auth = (): PullCredential => ({ auth: { username: REGISTRY_USER.username, password }, hash: "" });
    const nodeCredentials = { forImage: async () => [auth()] };
    puller = new ImagePuller({ images: connection.images, clock, nodeCredentials }, options, agent.signal);
  });
  afterEach(() => {
    proxy.heal();
    password = REGISTRY_USER.password;
    options.set({ parallel: 0, qps: 0, burst: 0, progressTimeoutMs: 0 });
  });
  after(async () => {
    agent.abort();
    connection?.close();
    await proxy?.stop();
    await containerd?.stop();
  });

  /** Pulls the image for a new pod each time, so that no back-off is left of an earlier one. */
  const pull = (
    image: string,
    {
      signal = agent.signal,
      onBytes = () => undefined,
    }: { signal?: AbortSignal; onBytes?: (done: number) => void } = {},
  ): Promise<{ ref: string; events: string[] }> => {
    const events: string[] = [];
    const detail: PullStep["detail"] = (_text, progress) => onBytes(progress?.doneBytes ?? 0);
    const step = { detail, done: () => undefined, fail: () => undefined, abort: () => undefined };
    const journal: PullJournal = {
      begin: () => step,
      event: (type, reason, what) =>
        void events.push(`${type} ${reason} ${typeof what === "string" ? what : what.message}`),
    };
    const of = pod("web", `uid-${Math.random()}`).container("app", { image, imagePullPolicy: "Always" }).build();
    const request = { pod: of, container: of.spec.containers[0] ?? { name: "" }, journal };
    return puller
      .ensure({ ...request, slot: { release: () => undefined } }, { signal })
      .then(({ ref }) => ({ ref, events }));
  };
  /** A new image of two layers in the registry; its name at the proxy, and the digest of its own layer. */
  const image = async (name: string, bytes = 64 * 1024): Promise<{ name: string; layer: string }> => {
    const { blobs } = await registry.add(`test/${name}`, [fillingLayer(name, bytes), fillingLayer("shared", 1024)]);
    return { name: `${proxy.host}/test/${name}:1`, layer: blobs[0]?.digest ?? "" };
  };

  const failures: readonly {
    name: string;
    fault: RegistryFault;
    where: "manifest" | "layer";
    says: RegExp;
    timeoutMs?: number;
    bytes?: number;
    /** Bytes that arrive before the time limit counts: how long they take depends on the machine. */
    arriving?: number;
  }[] = [
    { name: "not-found", fault: { kind: "status", status: 404 }, where: "manifest", says: /not found/ },
    {
      name: "too-many",
      fault: { kind: "status", status: 429, headers: { "retry-after": "1" } },
      where: "manifest",
      says: /429 Too Many Requests/,
    },
    { name: "broken", fault: { kind: "status", status: 500 }, where: "manifest", says: /500 Internal Server Error/ },
    { name: "lost-layer", fault: { kind: "status", status: 404 }, where: "layer", says: /not found/ },
    { name: "broken-layer", fault: { kind: "status", status: 500 }, where: "layer", says: /500 Internal Server Error/ },
    { name: "cut", fault: { kind: "cut" }, where: "layer", says: /unexpected EOF|connection reset|short read/ },
    {
      name: "wrong-digest",
      fault: { kind: "corrupt" },
      where: "layer",
      says: /unexpected commit digest|failed commit/,
    },
    {
      name: "stalled",
      fault: { kind: "stall" },
      where: "layer",
      says: /^pull made no progress for 1s \(imagePullProgressTimeout\) after 1\.0Mi of 3\.0Mi bytes/,
      timeoutMs: 1000,
      // containerd writes what it receives in pieces of a MiB.
      bytes: 3 * MIB,
      arriving: MIB,
    },
    {
      name: "silent",
      fault: { kind: "silent" },
      where: "manifest",
      says: /^pull made no progress for 1s \(imagePullProgressTimeout\) before the registry sent/,
      timeoutMs: 1000,
    },
    { name: "endless", fault: { kind: "endless" }, where: "layer", says: /registry sent more bytes|expected size/ },
  ];
  for (const { name, fault, where, says, timeoutMs = 0, bytes, arriving = 0 } of failures) {
    if (isLeftOut(`${name}:`)) continue;
    it(`${name}: fails with its words and a back-off, and succeeds once the registry does`, async () => {
      const { name: ref, layer } = await image(name, bytes);
      const isHit = where === "manifest" ? isManifest : isFilling([layer]);
      proxy.fault = (seen) => (isHit(seen) ? fault : undefined);
      let arrived = 0;
      const failed = pull(ref, { onBytes: (done) => void (arrived = done) }).then(
        () => new Error("it was pulled"),
        (thrown: unknown) => thrown,
      );
      await until("what the registry sends has arrived", () => arrived >= arriving);
      options.set({ ...options.current, progressTimeoutMs: timeoutMs });
      const error = await failed;
      assert.ok(error instanceof StartError, String(error));
      assert.match(error.message, says);
      assert.deepEqual([error.reason, error.retry.reason], ["ErrImagePull", "ImagePullBackOff"]);
      assert.equal(error.retry.afterMs, 10_000);
      assert.equal(error.retry.message, `Back-off pulling image "${ref}": ErrImagePull: ${error.message}`);
      proxy.heal();
      options.set({ ...options.current, progressTimeoutMs: 0 });
      assert.match((await pull(ref)).ref, /^sha256:/);
    });
  }

  if ("only" in rest) return;

  it("a wrong password fails, names the registry's answer and not the password", async () => {
    const { name } = await image("private");
    password = "not-the-password";
    const error = await pull(name).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof StartError);
    assert.match(error.message, /401 Unauthorized|authorization failed|insufficient_scope/);
    assert.ok(!JSON.stringify(error.retry).includes(password));
    password = REGISTRY_USER.password;
    assert.match((await pull(name)).ref, /^sha256:/);
  });

  it("a token is asked for where the registry wants one", async () => {
    const { name } = await image("token");
    proxy.token = "t0ken";
    assert.match((await pull(name)).ref, /^sha256:/);
    assert.ok(proxy.seen.some(({ path }) => path.startsWith("/token")));
  });

  it("a redirect is followed", async () => {
    const { name, layer } = await image("redirected");
    proxy.fault = (seen) => (isFilling([layer])(seen) ? { kind: "redirect" } : undefined);
    assert.match((await pull(name)).ref, /^sha256:/);
    assert.ok(proxy.seen.some(({ path }) => path.startsWith("/elsewhere") && path.includes(layer)));
  });

  it("a slow registry is waited for, also with a time limit on progress", async () => {
    // Longer in all than the limit, and far from it from one MiB to the next, also on a busy machine.
    const limitMs = 5000;
    const { name, layer } = await image("slow", 7 * MIB);
    proxy.fault = (seen) => (isFilling([layer])(seen) || seen.path === "/v2/x/blobs/x" ? SLOW : undefined);
    options.set({ ...options.current, progressTimeoutMs: limitMs });
    const began = performance.now();
    assert.match((await pull(name)).ref, /^sha256:/);
    assert.ok(performance.now() - began > limitMs);
  });
  const SLOW = { kind: "slow", bytesPerSecond: MIB } as const;

  it("a pull that nobody needs any more ends at the registry", async () => {
    const { name } = await image("unwanted", 4 * MIB);
    proxy.fault = (seen) => (isBlob(seen) ? { kind: "slow", bytesPerSecond: MIB / 16 } : undefined);
    const wanted = new AbortController();
    const pulled = pull(name, { signal: wanted.signal }).catch((error: unknown) => error);
    await until("it is being sent", () => proxy.sending > 0);
    const reason = new Error("nobody needs it");
    wanted.abort(reason);
    assert.equal(await pulled, reason);
    await until("the transfer has ended", () => proxy.sending === 0);
  });
}

describe("the queue and the progress of pulls in an agent", () => {
  const site = new Site();
  const agent = new PlainAgent(site);
  const busybox = findInPath("busybox", process.env["PATH"]) ?? "";
  let proxy: RegistryProxy;

  /** A pod of a new image of this size. */
  const wanting = async (name: string, bytes: number, image = name): Promise<Pod> => {
    await registry.add(`agent/${image}`, [shellLayer(busybox), fillingLayer(image, bytes)]);
    const containers = [{ name: "main", image: `${proxy.host}/agent/${image}:1`, command: ["/bin/sh", "-c", FOREVER] }];
    return manifest(name, { containers });
  };
  const slow = (bytesPerSecond: number): void => {
    proxy.fault = (seen) => (isBlob(seen) ? { kind: "slow", bytesPerSecond } : undefined);
  };
  const gone = async (...names: string[]): Promise<void> => {
    for (const name of names) site.remove(name);
    for (const name of names) await site.gone(name);
  };
  const detail = ({ step }: PodExplanation): string => step?.detail ?? "";

  before(async () => {
    proxy = await RegistryProxy.start(registry);
    // The embedded runtime outlives the agent that started it.
    await (await site.up()).end("SIGINT");
    const endpoint = { containerRuntimeEndpoint: `unix://${site.layout.socket}`, staticPodPath: site.pods };
    agent.set({ healthzPort: 0, readOnlyPort: 0, registryPullQPS: 0, ...endpoint });
    await agent.start([`--hostname-override=${NODE}`]);
    // The first pod brings the shared layer.
    site.write(await wanting("first", 1024));
    await site.running("first");
    await gone("first");
  });
  after(async () => {
    await proxy?.stop();
    await agent.close();
    await site.close();
  });
  afterEach(() => proxy.heal());

  it("serialized: the second pull waits behind the first, other pods start, and the progress shows", async () => {
    // Longer than all that is looked at meanwhile takes on a busy machine.
    const big = await wanting("big", 24 * MIB);
    const small = await wanting("small", 64 * 1024);
    slow(MIB);
    const [began, sentBefore] = [performance.now(), proxy.sentBytes];
    site.write(big);
    await site.pod("big", "is being pulled", (pod) => detail(pod).endsWith(": pulling"));
    site.write(small);
    const queued = await site.pod("small", "is queued", (pod) => /waiting behind/.test(detail(pod)));
    assert.match(detail(queued), /small:1: waiting behind 1 pull$/);
    const status = await site.pod("small", "says so", ({ containers: [main] }) => main?.message !== "");
    const { state, reason, message } = status.containers[0] ?? {};
    assert.deepEqual([state, reason, message], ["waiting", "ContainerCreating", "waiting behind 1 pull"]);
    assert.deepEqual(
      queued.events.filter(({ type }) => type === "Warning"),
      [],
    );
    site.write(manifest("present"));
    await site.running("present");
    // A busy machine is slower than a MiB a second: what counts is what was sent.
    const isRate = (rate: number): boolean => {
      const sent = (proxy.sentBytes - sentBefore) / ((performance.now() - began) / 1000);
      return rate > sent / 3 && rate < 3 * sent;
    };
    const pulled = await site.pod(
      "big",
      "shows its progress",
      ({ step }) => step?.progress?.remainingMs !== undefined && isRate(step.progress.bytesPerSecond ?? 0),
    );
    const { progress } = pulled.step ?? {};
    assert.ok(
      (progress?.totalBytes ?? 0) > 24 * MIB && (progress?.totalBytes ?? 0) < 24.1 * MIB,
      JSON.stringify(progress),
    );
    const words =
      /pulling image main( \(\d+s\))?, [\d.]+Mi of 24Mi, [\d.]+[KM]i\/s, (\d+m)?(\d+s)? left: \S+big:1: pulling/;
    assert.match((await site.run("explain", "big")).stdout, words);
    assert.match((await site.run("ps")).stdout, words);
    const watcher = site.start("events", "-w", "--progress");
    await watcher.says(/PullProgress {2}default\/big-\S+ {2}\S+big:1: pulling, [\d.]+Mi of 24Mi/);
    await watcher.end("SIGTERM");
    const passing = (await site.events()).filter(({ reason }: PodEvent) => reason === "PullProgress");
    assert.deepEqual(passing, [], "progress is not kept");
    proxy.heal();
    await site.running("big");
    await site.running("small");
    await gone("big", "small", "present");
  });

  it("parallel pulls, changed while running: all at once, and then two at a time", async () => {
    const pods = await Promise.all(["p1", "p2", "p3"].map((name) => wanting(name, MIB)));
    // A minute, until the proxy is healed.
    slow(16 * 1024);
    for (const one of pods) site.write(one);
    await until(
      "two wait",
      async () => (await site.list()).filter((one) => /waiting behind/.test(one.step?.detail ?? "")).length === 2,
    );
    agent.set({ serializeImagePulls: false, maxParallelImagePulls: 2 });
    await agent.inForce("maxParallelImagePulls", 2);
    await until(
      "one waits",
      async () =>
        (await site.list()).filter((one) => /waiting behind 2 pulls/.test(one.step?.detail ?? "")).length === 1,
    );
    await agent.change("maxParallelImagePulls", 3);
    await until(
      "all are pulled",
      async () => (await site.list()).filter((one) => (one.step?.detail ?? "").endsWith("pulling")).length === 3,
    );
    proxy.heal();
    for (const name of ["p1", "p2", "p3"]) await site.running(name);
    await gone("p1", "p2", "p3");
  });

  it("two tags of one repository that are pulled at once show their progress", async () => {
    const image = `${proxy.host}/agent/tags`;
    // Half a minute each, until the proxy is healed.
    const bytes = 16 * MIB;
    for (const tag of ["a", "b"]) {
      await registry.add("agent/tags", [shellLayer(busybox), fillingLayer(`tags-${tag}`, bytes)], tag);
      const command = ["/bin/sh", "-c", FOREVER];
      const containers = [{ name: "main", image: `${image}:${tag}`, command }];
      slow(MIB / 2);
      site.write(manifest(`tag-${tag}`, { containers }));
    }
    for (const name of ["tag-a", "tag-b"]) {
      const { step } = await site.pod(
        name,
        "shows its progress",
        (one) => (one.step?.progress?.bytesPerSecond ?? 0) > 0,
      );
      const { totalBytes = 0 } = step?.progress ?? {};
      // Of one of them or, where nothing tells which is which, of both.
      const isShared = step?.detail?.endsWith(": pulling, counted with other tags of the repository") ?? false;
      const most = (isShared ? 2 : 1) * bytes + 0.1 * MIB;
      assert.ok(totalBytes > bytes && totalBytes < most, `${totalBytes} ${step?.detail}`);
    }
    proxy.heal();
    for (const name of ["tag-a", "tag-b"]) await site.running(name);
    await gone("tag-a", "tag-b");
  });

  it("registryPullQPS holds pulls back without an error", async () => {
    // Of five, one waits behind another for three seconds.
    const names = ["q1", "q2", "q3", "q4", "q5"];
    const pods = await Promise.all(names.map((name) => wanting(name, 1024)));
    agent.set({ registryBurst: 1 });
    await agent.change("registryPullQPS", 1);
    const began = performance.now();
    for (const one of pods) site.write(one);
    await until("one is held back", async () =>
      (await site.list()).some((one) => /waiting behind 1 pull \(registryPullQPS 1\)/.test(one.step?.detail ?? "")),
    );
    for (const name of names) await site.running(name);
    assert.ok(performance.now() - began > 3900, "five pulls at one a second");
    const warnings = (await site.events()).filter(({ type, pod }) => type === "Warning" && /^q\d/.test(pod.name));
    assert.deepEqual(warnings, []);
    await agent.change("registryPullQPS", 0);
    await gone(...names);
  });

  it("two pods of two namespaces that need one image transfer it once", async () => {
    const one = await wanting("one", MIB, "shared-by-two");
    const two = { ...one, metadata: { name: "two", namespace: "other" } };
    const before = proxy.sentBytes;
    slow(MIB);
    site.write(one);
    site.write(two);
    await site.running("one");
    await site.running("two");
    const sent = proxy.sentBytes - before;
    assert.ok(sent > MIB && sent < 1.5 * MIB, `${sent} bytes`);
    const pulls = (await site.events()).filter(
      ({ reason, pod }) => reason === "Pulled" && /^(one|two)-/.test(pod.name),
    );
    assert.equal(pulls.length, 2);
    await gone("one", "two");
  });

  it("the pull of a pod that is removed is cancelled: the runtime receives nothing more", async () => {
    const unwanted = await wanting("unwanted", 8 * MIB);
    slow(MIB / 2);
    site.write(unwanted);
    await until("bytes arrive", () => proxy.sending > 0);
    await gone("unwanted");
    await until("the transfer has ended", () => proxy.sending === 0);
    const { sentBytes } = proxy;
    await pause(300);
    assert.equal(proxy.sentBytes, sentBytes);
  });

  it("a stuck pull is reported and tried again once imagePullProgressTimeout is set", async () => {
    const stuck = await wanting("stuck", MIB);
    proxy.fault = (seen) => (isBlob(seen) ? { kind: "stall" } : undefined);
    site.write(stuck);
    await site.pod("stuck", "has begun", ({ step }) => step?.progress?.totalBytes !== undefined);
    await agent.change("imagePullProgressTimeout", "1s");
    const event = await site.event("ImagePullStuck", "stuck");
    assert.match(event.message, /^pull made no progress for 1s \(imagePullProgressTimeout\) after /);
    const waiting = await site.pod("stuck", "waits", ({ containers }) => containers[0]?.reason === "ImagePullBackOff");
    assert.match(waiting.containers[0]?.message ?? "", /Back-off pulling image .*ErrImagePull: pull made no progress/);
    await gone("stuck");
  });
});

describe("the live view of `kubelet up` on a terminal", () => {
  const site = new Site();
  let proxy: RegistryProxy;
  before(async () => {
    proxy = await RegistryProxy.start(registry);
  });
  after(async () => {
    await proxy?.stop();
    await site.close();
  });

  it("shows bytes, rate and remaining time of a running pull, and that it goes on", async () => {
    const shell = shellLayer(findInPath("busybox", process.env["PATH"]) ?? "");
    await registry.add("agent/shown", [shell, fillingLayer("shown", 6 * MIB)]);
    proxy.fault = (seen) => (isBlob(seen) ? { kind: "slow", bytesPerSecond: MIB } : undefined);
    const image = `${proxy.host}/agent/shown:1`;
    site.write(manifest("shown", { containers: [{ name: "main", image, command: ["/bin/sh", "-c", FOREVER] }] }));
    const ports = `--healthz-port ${await freePort()} --read-only-port ${await freePort()} --port ${await freePort()}`;
    const place = `--pods ${site.pods} --state-dir ${site.state} --hostname-override ${NODE} --cadvisor-port 0`;
    const command = `stty cols 160 rows 40; exec ${KUBELET} up ${place} ${ports}`;
    const terminal = new Program(["script", "--quiet", "--return", "--command", command, "/dev/null"], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    const pulling =
      /shown-here +ContainerCreating .*pulling image main \(\d+s\), ([\d.]+)Mi of [78]\.\dMi, [\d.]+[KM]i\/s, \d+s left: \S+shown:1: pulling/g;
    const shown = (): number[] => [...unpainted(terminal.stdout).matchAll(pulling)].map(([, done]) => Number(done));
    await until("it has moved", () => new Set(shown()).size >= 3, { seen: () => terminal.stdout });
    const found = shown();
    assert.deepEqual(
      found,
      found.toSorted((a, b) => a - b),
    );
    proxy.heal();
    await site.running("shown");
    await until("it runs", () => /● shown-here +Running/.test(unpainted(terminal.stdout)), {
      seen: () => terminal.stdout,
    });
    terminal.child.stdin?.write("\x03");
    assert.equal((await terminal.ended).code, 0);
    // What is drawn last is what is left on the screen.
    const last = unpainted(terminal.stdout).split("\u001b[J").at(-2) ?? "";
    assert.match(last, /● shown-here +Running/);
    assert.ok(!last.includes("pulling"), last);
  });
});

/** Without colours. */
function unpainted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour sequences begin with one
  return text.replaceAll(/\u001b\[[0-9;]*m/g, "");
}
