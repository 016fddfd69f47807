/**
 * A pod with a volume of every kind while the agent is killed with SIGKILL at random points of its life: while it
 * starts, while objects change, while it ends. It always starts, sees what is new, and leaves no mount and no directory.
 * KUBELET_CHAOS_SEED repeats a run, KUBELET_CHAOS_ROUNDS makes it longer.
 */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { messageOf } from "../../src/lib/errors.ts";
import { everyKind } from "../integration/support/every-kind.ts";
import { ids, requireExec, requireMachine, Site } from "../integration/support/site.ts";
import { pause, until } from "../integration/support/until.ts";
import { chooseSeed, randomFrom } from "../support/random.ts";

requireMachine();
requireExec();

const seed = chooseSeed("KUBELET_CHAOS_SEED", 11);
const ROUNDS = Number(process.env["KUBELET_CHAOS_ROUNDS"] ?? 5);
const random = randomFrom(seed);
const { signal } = new AbortController();

const site = new Site();
const podsDir = join(site.state, "kubelet/pods");
const host = mkdtempSync(join(site.dir, "h-"));
/** The last words of agents that are killed: a pipe would be one more thing that ends with them. */
const words = openSync(join(site.dir, "words"), "a");
let kills = 0;

/** Agents that live for a random while each, then one that stays. */
async function restarts(atMost: number, lifeMs: number): Promise<void> {
  for (let left = Math.ceil(random() * atMost); left > 0; left--) {
    const agent = await site.launch([], { stdio: ["ignore", "ignore", words] });
    // Half of them while they start, the others while they work.
    if (random() < 0.5) await site.answers(agent);
    await pause(random() * lifeMs);
    assert.equal(agent.isOver, false, "an agent ended by itself");
    await agent.end("SIGKILL");
    kills++;
  }
}

function put(kind: "ConfigMap" | "Secret", name: string, data: Record<string, string>): void {
  const fields = kind === "ConfigMap" ? { data } : { stringData: data };
  const text = JSON.stringify({ apiVersion: "v1", kind, metadata: { name }, ...fields });
  writeFileSync(site.file(`.${name}.tmp`), text);
  renameSync(site.file(`.${name}.tmp`), site.file(`${kind.toLowerCase()}-${name}.json`));
}

/** Both objects with this word in them; what the pod shows of it is `shown`. */
function say(word: string): void {
  put("ConfigMap", "settings", { colour: word, size: word });
  put("Secret", "login", { password: word });
}

function shown(word: string): string {
  return Array.from({ length: 6 }, () => word).join("");
}

async function show(name: string): Promise<string> {
  const pod = await site.running(name);
  const id = pod.containers[0]?.id.replace(/^.*:\/\//, "") ?? "";
  const files =
    "/v/config/deep/colour /v/config/size /v/whole/colour /v/login/password /v/mixed/from/config /v/mixed/from/secret";
  const command = ["/bin/sh", "-c", `cat ${files} && touch /v/disk/x /v/memory/x /sub/dir/x /v/host/x`];
  const { stdout, stderr } = await site.cri.execSync(id, { command, timeoutSeconds: 10 }, { signal });
  return `${Buffer.from(stdout)}${Buffer.from(stderr)}`;
}

function mountsBelow(path: string): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((target) => target.startsWith(`${path}/`))
    .sort();
}

async function oneLife(round: number): Promise<void> {
  const name = `every-${round}`;
  const uid = `00000000-0000-4000-8000-${String(round).padStart(12, "0")}`;
  const dir = join(podsDir, uid);
  say(`a${round}`);
  site.write(everyKind({ host, name, uid }));
  await restarts(3, 900);
  let agent = await site.up();
  assert.equal(await show(name), shown(`a${round}`));
  const first = ids(await site.running(name));
  const mounts = mountsBelow(dir);
  assert.deepEqual(mounts, [...new Set(mounts)], "nothing is mounted twice");

  say(`b${round}`);
  await pause(random() * 60);
  await agent.end("SIGKILL");
  kills++;
  await restarts(2, 300);
  agent = await site.up();
  await until("what is new", async () => (await show(name)) === shown(`b${round}`));
  assert.deepEqual(ids(await site.running(name)), first, "no container was restarted");
  assert.deepEqual(mountsBelow(dir), mounts, "the same mounts, once each");

  site.remove(name);
  await pause(random() * 500);
  await agent.end("SIGKILL");
  kills++;
  await restarts(2, 500);
  agent = await site.up();
  await site.gone(name);
  await until("its directory is gone", () => !existsSync(dir), { seen: () => mountsBelow(dir) });
  assert.deepEqual(mountsBelow(podsDir), []);
  await agent.end("SIGKILL");
  kills++;
}

describe(`a pod with every kind of volume, ${ROUNDS} lives, seed ${seed}`, () => {
  after(() => site.close());

  it("starts, sees updates, ends and leaves nothing, whenever the agent is killed", async (t) => {
    mkdirSync(join(host, "inner"));
    writeFileSync(join(host, "inner/precious"), "keep");
    for (let round = 0; round < ROUNDS; round++) {
      try {
        await oneLife(round);
      } catch (error) {
        throw new Error(`round ${round} of seed ${seed}: ${messageOf(error)}\n${logEnd()}`, { cause: error });
      }
    }
    assert.deepEqual(readdirSync(podsDir), []);
    assert.equal(readFileSync(join(host, "inner/precious"), "utf8"), "keep");
    t.diagnostic(`seed ${seed}: ${kills} kills`);
  });
});

function logEnd(): string {
  const files = [join(site.dir, "words"), join(site.state, "kubelet.log")].filter((file) => existsSync(file));
  return files.map((file) => readFileSync(file, "utf8").split("\n").slice(-40).join("\n")).join("\n");
}
