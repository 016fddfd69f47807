/**
 * A node of a real cluster while its agent, its containerd and its API server are killed (SIGKILL) or stand still
 * (SIGSTOP, SIGCONT) at random points, and pods come and go: no container is restarted without cause, none runs twice,
 * the statuses are true in the end, nothing is left behind.
 * KUBELET_CHAOS_SEED repeats a run, KUBELET_CHAOS_FAULTS makes it longer.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { CriRuntime } from "../../src/adapters/cri/cri-runtime.ts";
import { ApiError } from "../../src/adapters/kubeapi/index.ts";
import { PODS } from "../../src/adapters/kubeapi/resources.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { messageOf } from "../../src/lib/errors.ts";
import { fixed } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import type { ContainerStatus, Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, FOREVER, isReady, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { freeze, thaw } from "../support/freeze.ts";
import { chooseSeed, randomFrom } from "../support/random.ts";

skipWithoutCluster();

const seed = chooseSeed("KUBELET_CHAOS_SEED", 15);
const FAULTS = Number(process.env["KUBELET_CHAOS_FAULTS"] ?? 16);
/** Longest pause of a process that stands still, and between its death and its next start. */
const STILL_MS = 3000;
const CONVERGE_MS = 120_000;
/** What a container that runs once writes its lines into. */
const LINES = "/lines";

const random = randomFrom(seed);
const below = (limit: number): number => Math.floor(random() * limit);
const { signal } = new AbortController();

const image = { image: TEST_IMAGES.busybox, imagePullPolicy: "Never" };
const data = { name: "data", mountPath: "/data" };
const idle = { ...image, name: "main", command: FOREVER };
const serve = ["/bin/sh", "-c", "echo ok > /data/index.html; exec httpd -f -p 8080 -h /data"];
const probe = { httpGet: { path: "/", port: 8080 }, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 30 };

/** These must not be touched from the first to the last fault. */
const stable: readonly Pod[] = [
  testPod("stable-plain"),
  testPod("stable-two", { containers: [idle, { ...idle, name: "second" }] }),
  testPod("stable-host", { hostNetwork: true }),
  testPod("stable-probed", {
    containers: [
      {
        ...idle,
        command: serve,
        volumeMounts: [data],
        startupProbe: probe,
        readinessProbe: probe,
        livenessProbe: probe,
      },
    ],
    volumes: [{ name: "data", emptyDir: {} }],
  }),
  testPod("stable-sidecar", {
    initContainers: [
      { ...image, name: "first", command: ["/bin/true"] },
      { ...idle, name: "sidecar", restartPolicy: "Always" },
    ],
  }),
];

describe(`a node whose agent, runtime and API server fail ${FAULTS} times, seed ${seed}`, () => {
  let site: ClusterSite;
  let agent: Program;
  let runtime: CriRuntime;
  /** What the API server was asked to have, by name. */
  const wanted = new Map<string, Pod>();
  let made = 0;
  const story: string[] = [];

  const api = () => site.plane.clients().calls;
  const list = async (): Promise<readonly Pod[]> =>
    (await calls.list(PODS, { namespace: "default" }, { signal, timeoutMs: 15_000 })).items;
  let calls: ReturnType<typeof api>;

  /** A pod that runs for ever, or one that writes a line and ends: more than one line would be a second run. */
  function newPod(): Pod {
    const name = `churn-${made++}`;
    if (random() < 0.5) return testPod(name, { volumes: [{ name: "data", emptyDir: {} }] });
    const script = `echo ran >> ${LINES}/${name}; sleep ${below(3)}`;
    const mount = { name: "lines", mountPath: LINES };
    return testPod(name, {
      restartPolicy: "Never",
      containers: [{ ...idle, command: ["/bin/sh", "-c", script], volumeMounts: [mount] }],
      volumes: [{ name: "lines", hostPath: { path: join(site.dir, "lines") } }],
    });
  }

  /** One change: a pod comes or goes. What was asked for while the server was away may or may not have happened. */
  async function churn(): Promise<string> {
    const names = [...wanted.keys()].filter((name) => name.startsWith("churn-"));
    const name = names[below(names.length)];
    try {
      if (name === undefined || random() < 0.6) {
        const pod = newPod();
        wanted.set(pod.metadata.name ?? "", pod);
        await calls.create(PODS, { namespace: "default", object: pod }, { signal, timeoutMs: 1000 });
        return `+${pod.metadata.name}`;
      }
      wanted.delete(name);
      await calls.delete(PODS, { namespace: "default", name }, { signal, timeoutMs: 1000 });
      return `-${name}`;
    } catch (error) {
      return `(${error instanceof ApiError ? error.code : messageOf(error)})`;
    }
  }

  /** Creates a pod unless it is there: a create that was cut off may succeed late. */
  async function restore(object: Pod): Promise<void> {
    try {
      await calls.create(PODS, { namespace: "default", object }, { signal });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "AlreadyExists") throw error;
    }
  }

  /** Deletes a pod that may be on its way out already. */
  async function remove(name: string): Promise<void> {
    try {
      await calls.delete(PODS, { namespace: "default", name }, { signal, timeoutMs: 15_000 });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
    }
  }

  /** What can go wrong; each leaves everything running. */
  const faults: Readonly<Record<string, (ms: number) => Promise<void>>> = {
    "kill the agent": async (ms) => {
      await agent.end("SIGKILL");
      await pause(ms / 4);
      agent = await site.join();
    },
    "kill containerd": async (ms) => {
      await site.containerd.kill();
      await pause(ms);
      await site.containerd.start();
    },
    "freeze containerd": async (ms) => {
      const { pid } = site.containerd;
      assert.ok(pid !== undefined, "containerd runs");
      await freeze(pid);
      await pause(ms);
      thaw(pid);
    },
    "kill the API server": async (ms) => {
      await site.plane.killApiServer();
      await pause(ms / 4);
      await site.plane.startApiServer();
    },
    "freeze the API server": async (ms) => {
      await site.plane.freezeApiServer();
      await pause(ms);
      site.plane.thawApiServer();
    },
    "kill the agent and containerd": async (ms) => {
      await Promise.all([agent.end("SIGKILL"), site.containerd.kill()]);
      await site.containerd.start();
      await pause(ms / 4);
      agent = await site.join();
    },
  };

  async function oneFault(): Promise<void> {
    const names = Object.keys(faults);
    const name = names[below(names.length)] ?? "";
    const [ms, changeMs, settleMs] = [random() * STILL_MS, random() * STILL_MS, random() * 600];
    const before = await churn();
    const during = pause(changeMs).then(churn);
    await faults[name]?.(ms);
    story.push(`${name} ${Math.round(ms)} ms ${before} ${await during}`);
    await pause(settleMs);
    assert.ok(!agent.isOver, `the agent ended by itself after: ${name}\n${agent.stderr.slice(-3000)}`);
  }

  const containersOf = ({ status }: Pod): readonly ContainerStatus[] => [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
  ];
  const facts = async (): Promise<object> =>
    Object.fromEntries(
      (await list())
        .filter(({ metadata }) => metadata.name?.startsWith("stable-"))
        .map((pod) => [
          pod.metadata.name,
          {
            uid: pod.metadata.uid,
            ip: pod.status?.podIP,
            ready: isReady(pod),
            containers: containersOf(pod).map(({ containerID, restartCount }) => [containerID, restartCount]),
          },
        ]),
    );

  /** Everything that is not as it should be; empty in the end. */
  async function deviations(): Promise<string[]> {
    const found: string[] = [];
    const pods = await list();
    const names = pods.map(({ metadata }) => metadata.name ?? "").sort();
    const expected = [...wanted.keys()].sort();
    if (names.join() !== expected.join()) found.push(`pods: ${names.join()} instead of ${expected.join()}`);
    const [sandboxes, containers] = [
      await runtime.listSandboxes({}, { signal }),
      await runtime.listContainers({}, { signal }),
    ];
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const { metadata } of sandboxes)
      if (!uids.has(metadata.uid)) found.push(`sandbox of ${metadata.name} is left`);
    for (const pod of pods) {
      const { name = "", uid = "" } = pod.metadata;
      const own = sandboxes.filter(({ metadata, state }) => metadata.uid === uid && state === "ready");
      const running = containers.filter(
        ({ sandboxId, state }) => state === "running" && own.some(({ id }) => id === sandboxId),
      );
      const reported = containersOf(pod).filter(({ state }) => state?.running !== undefined);
      const ids = (all: readonly string[]): string => [...all].sort().join();
      const [inRuntime, inApi] = [
        ids(running.map(({ id }) => id)),
        ids(reported.map(({ containerID = "" }) => containerID.replace(/^.*:\/\//, ""))),
      ];
      if (inRuntime !== inApi) found.push(`${name}: runs ${inRuntime}, reported ${inApi}`);
      if (pod.spec.restartPolicy === "Never") {
        const { phase } = pod.status ?? {};
        if (phase !== "Succeeded" && phase !== "Failed") found.push(`${name} is ${phase}`);
        continue;
      }
      if (!isReady(pod)) found.push(`${name} is not ready`);
      if (own.length !== 1) found.push(`${name} has ${own.length} sandboxes`);
    }
    return found;
  }

  before(async () => {
    site = await ClusterSite.start();
    calls = api();
    const deps = { clock: new SystemClock(), log: silent };
    runtime = new CriRuntime(deps, { endpoint: site.containerd.endpoint, requestTimeoutMs: fixed(30_000) });
    mkdirSync(join(site.dir, "lines"));
    agent = await site.join();
    await site.nodeReady();
    for (const pod of stable) wanted.set(pod.metadata.name ?? "", pod);
    site.create(stable);
    for (const pod of stable) await site.podReady(pod.metadata.name ?? "");
  });
  after(async () => {
    runtime?.close();
    if (site?.containerd.pid !== undefined) thaw(site.containerd.pid);
    site?.plane.thawApiServer();
    await site?.close();
  });

  test("restarts nothing, doubles nothing, reports the truth, leaves nothing behind", {
    timeout: 600_000,
  }, async (t) => {
    const began = await facts();
    for (let fault = 0; fault < FAULTS; fault++) await oneFault();
    // A create or delete that was cut off is made up for, so that it is known what there should be.
    for (const name of (await list()).map(({ metadata }) => metadata.name ?? "")) {
      if (!wanted.has(name)) await remove(name);
    }
    for (const [name, object] of wanted) {
      if ((await site.lookAtPod(name)) === undefined) await restore(object);
    }
    let found: string[] = [];
    const log = (): string => agent.stderr.split("\n").slice(-40).join("\n");
    const seen = (): string => `${found.join("\n")}\n${story.join("\n")}\n${log()}`;
    const started = performance.now();
    const isTrue = async (): Promise<boolean> => (found = await deviations()).length === 0;
    await until(`all is as wanted (seed ${seed})`, isTrue, { limitMs: CONVERGE_MS, seen });
    const took = Math.round(performance.now() - started);
    assert.deepEqual(await facts(), began, seen());
    const ran = lines(join(site.dir, "lines"));
    for (const [name, count] of ran) assert.ok(count === 1, `${name} ran ${count} times\n${seen()}`);
    for (const { metadata, status } of await list()) {
      if (status?.phase === "Succeeded") assert.equal(ran.get(metadata.name ?? ""), 1, `${metadata.name}\n${seen()}`);
    }

    for (const name of wanted.keys())
      await calls.delete(PODS, { namespace: "default", name }, { signal, timeoutMs: 15_000 });
    const left = async (): Promise<boolean> => {
      const podDirs = readdirSync(join(site.root, "pods"));
      found = [
        ...(await list()).map(({ metadata }) => `pod ${metadata.name}`),
        ...(await runtime.listSandboxes({}, { signal })).map(({ metadata }) => `sandbox of ${metadata.name}`),
        ...podDirs.map((uid) => `directory of ${uid}`),
        ...mountsBelow(join(site.root, "pods")).map((path) => `mount ${path}`),
        ...addresses(join(site.containerd.dir, "ipam")).map((address) => `address ${address}`),
      ];
      return found.length === 0;
    };
    await until("nothing is left", left, { limitMs: CONVERGE_MS, seen });
    t.diagnostic(`seed ${seed}: ${made} pods came, ${ran.size} ran once, all as wanted after ${took} ms`);
  });
});

function lines(dir: string): Map<string, number> {
  return new Map(
    readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), "utf8").trimEnd().split("\n").length]),
  );
}

function mountsBelow(dir: string): string[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((path) => path.startsWith(`${dir}/`));
}

/** The addresses that the network plug-in has given away. */
function addresses(dir: string): string[] {
  if (!existsSync(dir)) return [];
  const networks = readdirSync(dir);
  return networks.flatMap((name) => readdirSync(join(dir, name)).filter((file) => /^[\d.]+$/.test(file)));
}
