/**
 * The agent's own containerd killed (SIGKILL) or standing still (SIGSTOP, SIGCONT) at random points, also together with
 * the agent and while manifests come and go: no container is restarted, none is doubled.
 * KUBELET_CHAOS_SEED repeats a run, KUBELET_CHAOS_FAULTS makes it longer.
 */
import assert from "node:assert/strict";
import { existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { listProcesses, ownProcesses } from "../../src/adapters/embedded/processes.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import { deviations, leftovers, strayShims } from "../integration/support/chaos-checks.ts";
import { FOREVER, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, ids, requireMachine, Site } from "../integration/support/site.ts";
import { pause, until } from "../integration/support/until.ts";
import { freeze, thaw } from "../support/freeze.ts";
import { chooseSeed, randomFrom } from "../support/random.ts";

requireMachine();

const seed = chooseSeed("KUBELET_CHAOS_SEED", 12);
const FAULTS = Number(process.env["KUBELET_CHAOS_FAULTS"] ?? 20);
/** Longest time that containerd stands still. */
const STILL_MS = 3000;
/** Longest time between two faults. */
const REST_MS = 1500;
const CONVERGE_MS = 90_000;
/** Orphaned shims are searched for up to 75 s after the start of containerd or of the agent. */
const REAP_MS = 90_000;

const random = randomFrom(seed);
const site = new Site();
/** What agents wrote before they were killed: a pipe would be one more thing that ends with them. */
const words = openSync(join(site.dir, "words"), "a");
const wanted = new Map<string, Pod>();
const story: string[] = [];
let agent: Agent;
let version = 0;

const data = { volumes: [{ name: "data", emptyDir: {} }] };
const mounted = { volumeMounts: [{ name: "data", mountPath: "/data" }] };

/** These must not be touched from the first to the last fault. */
const stable: readonly Pod[] = [
  manifest("stable-1"),
  manifest("stable-2", { containers: [shell("a", FOREVER), shell("b", FOREVER)] }),
  manifest("stable-3", { hostNetwork: true }),
  manifest("stable-4", {
    initContainers: [shell("prepare", "date > /data/file", mounted)],
    containers: [shell("main", FOREVER, mounted)],
    ...data,
  }),
];

function put(pod: Pod): void {
  site.write(pod);
  wanted.set(pod.metadata.name ?? "", pod);
}

/** One change of the directory: a pod comes, changes or goes. */
function churn(): string {
  const name = `churn-${Math.floor(random() * 4)}`;
  if (wanted.has(name) && random() < 0.4) {
    site.remove(name);
    wanted.delete(name);
    return `-${name}`;
  }
  put(manifest(name, { hostname: `v${++version}`, containers: [shell("main", FOREVER, mounted)], ...data }));
  return `+${name}`;
}

/** Those that were killed may be listed for a moment. */
const killed = new Set<number>();

/** The process of containerd; the agent may just be starting another. */
function containerd(): Promise<number> {
  const find = (): number | undefined =>
    ownProcesses(listProcesses(), site.layout).containerd.find(({ pid }) => !killed.has(pid))?.pid;
  return until("containerd runs", find, { seen: logEnd });
}

async function killContainerd(): Promise<void> {
  const pid = await containerd();
  killed.add(pid);
  process.kill(pid, "SIGKILL");
}

async function launch(): Promise<void> {
  agent = await site.launch([], { stdio: ["ignore", "ignore", words] });
}

const faults: readonly { readonly name: string; run(ms: number): Promise<void> }[] = [
  { name: "kill containerd", run: killContainerd },
  {
    name: "freeze containerd",
    run: async (ms) => {
      const pid = await containerd();
      await freeze(pid);
      await pause(ms);
      // The agent may have replaced one that did not answer.
      if (existsSync(`/proc/${pid}`)) thaw(pid);
    },
  },
  {
    name: "kill containerd and the agent",
    run: async () => {
      await killContainerd();
      await agent.end("SIGKILL");
      await launch();
    },
  },
  {
    name: "freeze containerd, kill the agent",
    run: async (ms) => {
      const pid = await containerd();
      await freeze(pid);
      await agent.end("SIGKILL");
      await launch();
      await pause(ms);
      if (existsSync(`/proc/${pid}`)) thaw(pid);
    },
  },
];

async function oneFault(): Promise<void> {
  const fault = faults[Math.floor(random() * faults.length)];
  assert.ok(fault !== undefined);
  const [ms, rest] = [random() * STILL_MS, random() * REST_MS];
  const before = churn();
  await fault.run(ms);
  const after = random() < 0.5 ? churn() : "";
  story.push(`${fault.name} ${Math.round(ms)} ms ${before} ${after}`);
  await pause(rest);
  assert.equal(agent.isOver, false, `the agent ended by itself after: ${story.join("\n")}\n${logEnd()}`);
}

describe(`containerd failing ${FAULTS} times, seed ${seed}`, () => {
  before(() => {
    for (const pod of stable) put(pod);
  });
  after(() => site.close());

  it("restarts nothing and doubles nothing", async (t) => {
    await launch();
    const facts = async (): Promise<Record<string, unknown>> => {
      const found: Record<string, unknown> = {};
      for (const { metadata } of stable) {
        const pod = await site.running(metadata.name ?? "");
        found[pod.name] = { uid: pod.uid, ip: pod.ip, restarts: pod.restarts, ids: ids(pod) };
      }
      return found;
    };
    await site.answers(agent);
    const began = await facts();
    for (let fault = 0; fault < FAULTS; fault++) await oneFault();
    const started = performance.now();
    let found: string[] = [];
    // What matters most comes last: of a long output only the end is shown.
    const seen = (): string => `${story.join("\n")}\n${logEnd()}\n${found.join("\n")}`;
    const attempt = async (ask: () => Promise<string[]>): Promise<boolean> => {
      found = await ask().catch((error: unknown) => [String(error)]);
      return found.length === 0;
    };
    const asWanted = (): Promise<boolean> => attempt(() => deviations(site, wanted));
    await until(`the pods are as wanted (seed ${seed})`, asWanted, { limitMs: CONVERGE_MS, seen });
    const took = Math.round(performance.now() - started);
    assert.deepEqual(
      await facts(),
      began,
      `${seen()}\n${linesAbout(JSON.stringify(began).match(/[0-9a-f]{64}/g) ?? [])}`,
    );
    // A containerd that dies while it makes a sandbox loses track of what it has made by then: the agent ends the shim,
    // addresses and cables stay until `kubelet down`, which `close` checks.
    const shims = (): Promise<string[]> => strayShims(site);
    const noneStray = (): Promise<boolean> => attempt(shims);
    await until(`no shim is orphaned (seed ${seed})`, noneStray, { limitMs: REAP_MS, seen });
    const reaped = Math.round(performance.now() - started);
    const lost = await leftovers(site, 1);
    t.diagnostic(
      `seed ${seed}: ${version} changes of manifests, ${wanted.size} pods at the end, as wanted in ${took} ms, no orphaned shim in ${reaped} ms; ${lost.join(", ")}`,
    );
    await agent.end("SIGINT");
  });
});

function logEnd(): string {
  const files = [join(site.dir, "words"), join(site.state, "kubelet.log")].filter((file) => existsSync(file));
  return files.map((file) => readFileSync(file, "utf8").split("\n").slice(-60).join("\n")).join("\n");
}

/** What agent and containerd had to say about these containers, for one that did not stay. */
function linesAbout(ids: readonly string[]): string {
  const files = [join(site.dir, "words"), site.layout.logFile].filter((file) => existsSync(file));
  const lines = files.flatMap((file) => readFileSync(file, "utf8").split("\n"));
  const isAbout = (line: string): boolean => ids.some((id) => line.includes(id)) && !line.includes("level=info");
  return lines.filter(isAbout).slice(-40).join("\n");
}
