/**
 * The agent killed with SIGKILL a hundred times at random points, also while manifests come and go: no container is
 * restarted, none is doubled, none is left over. KUBELET_CHAOS_SEED repeats a run, KUBELET_CHAOS_KILLS makes it longer.
 */
import assert from "node:assert/strict";
import { existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { messageOf } from "../../src/lib/errors.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import { deviations, leftovers } from "../integration/support/chaos-checks.ts";
import { FOREVER, forever, manifest, shell } from "../integration/support/manifests.ts";
import { ids, requireMachine, Site } from "../integration/support/site.ts";
import { pause, until } from "../integration/support/until.ts";
import { chooseSeed, randomFrom } from "../support/random.ts";

requireMachine();

const seed = chooseSeed("KUBELET_CHAOS_SEED", 13);
const KILLS = Number(process.env["KUBELET_CHAOS_KILLS"] ?? 100);
/** Longest time between an agent's start (or its first answer) and its death. */
const LIFE_MS = 400;
const CONVERGE_MS = 90_000;

const random = randomFrom(seed);
const chance = (share: number): boolean => random() < share;

const data = { volumes: [{ name: "data", emptyDir: {} }] };
const mounted = { volumeMounts: [{ name: "data", mountPath: "/data" }] };

/** These must not be touched from the first to the last kill. */
const stable: readonly Pod[] = [
  manifest("stable-1"),
  manifest("stable-2", { containers: [shell("a", FOREVER), shell("b", FOREVER)] }),
  manifest("stable-3", { hostNetwork: true }),
  manifest("stable-4", { containers: [shell("main", FOREVER, mounted)], ...data }),
  manifest("stable-5", {
    initContainers: [shell("prepare", "date > /data/file", mounted)],
    containers: [shell("main", forever("cat /data/file"), mounted)],
    ...data,
  }),
];
const crashing = manifest("crashing", { containers: [shell("main", "sleep 1; exit 1")] });

const site = new Site();
/** The last words of agents that are killed: a pipe would be one more thing that ends with them. */
const words = openSync(join(site.dir, "words"), "a");
/** What is in the directory now, by name. */
const wanted = new Map<string, Pod>();
let version = 0;

function put(pod: Pod): void {
  const name = pod.metadata.name ?? "";
  site.write(pod);
  wanted.set(name, pod);
}

/** One change of the directory: a pod comes, changes, goes, or goes and is back at once. */
function churn(): string {
  const name = `churn-${Math.floor(random() * 4)}`;
  const pod = manifest(name, {
    ...(chance(0.5) ? { initContainers: [shell("first", "true")] } : {}),
    hostname: `v${++version}`,
    containers: [shell("main", FOREVER, mounted)],
    ...data,
  });
  if (!wanted.has(name)) {
    put(pod);
    return `+${name}`;
  }
  if (chance(0.4)) {
    put(pod);
    return `~${name}`;
  }
  const file = site.file(`${name}.json`);
  const content = readFileSync(file);
  site.remove(name);
  if (chance(0.3)) {
    writeFileSync(file, content);
    return `-+${name}`;
  }
  wanted.delete(name);
  return `-${name}`;
}

/** An agent that lives for a random while. */
async function oneLife(): Promise<string> {
  const notes: string[] = [];
  const work = chance(0.6);
  const life = random() * LIFE_MS;
  const before = chance(0.3);
  const during = chance(0.5) ? random() * life : undefined;
  if (before) notes.push(churn());
  const agent = await site.launch([], { stdio: ["ignore", "ignore", words] });
  // Either while it starts, or while it works.
  if (work) await site.answers(agent).catch((error: unknown) => assert.fail(`${messageOf(error)}\n${lastWords()}`));
  if (during !== undefined) {
    await pause(during);
    notes.push(churn());
  }
  await pause(life - (during ?? 0));
  assert.equal(agent.isOver, false, `the agent ended by itself: ${lastWords()}`);
  await agent.end("SIGKILL");
  return `${work ? "working" : "starting"} ${Math.round(life)} ms ${notes.join(" ")}`;
}

describe(`the agent killed ${KILLS} times, seed ${seed}`, () => {
  before(async () => {
    for (const pod of [...stable, crashing]) put(pod);
  });
  after(() => site.close());

  it("restarts nothing, doubles nothing, leaves nothing over", async (t) => {
    const first = await site.up();
    const facts = async (): Promise<Record<string, unknown>> => {
      const found: Record<string, unknown> = {};
      for (const { metadata } of stable) {
        const pod = await site.running(metadata.name ?? "");
        found[pod.name] = { uid: pod.uid, ip: pod.ip, restarts: pod.restarts, ids: ids(pod) };
      }
      return found;
    };
    const began = await facts();
    await first.end("SIGKILL");
    const lives: string[] = [];
    for (let kill = 0; kill < KILLS; kill++) lives.push(await oneLife());
    const last = await site.up();
    const started = performance.now();
    let found: string[] = [];
    const look = async (): Promise<boolean> => {
      found = await deviations(site, wanted);
      return found.length === 0;
    };
    const story = (): string => `${found.join("\n")}\n${lives.slice(-20).join("\n")}\n${logEnd()}`;
    await until("the pods are as wanted", look, { limitMs: CONVERGE_MS, seen: story });
    const took = Math.round(performance.now() - started);
    assert.deepEqual(await facts(), began);
    // The agent looks for forgotten shims up to 75 s after its start.
    const isClean = async (): Promise<boolean> => (found = await leftovers(site, 1)).length === 0;
    await until("nothing is left over", isClean, { limitMs: 120_000, seen: story });
    t.diagnostic(
      `seed ${seed}: ${version} changes of manifests, ${wanted.size} pods at the end, as wanted in ${took} ms`,
    );
    await last.end("SIGINT");
  });
});

function lastWords(): string {
  return readFileSync(join(site.dir, "words"), "utf8").slice(-2000);
}

function logEnd(): string {
  const log = join(site.state, "kubelet.log");
  return existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(-60).join("\n") : "";
}
