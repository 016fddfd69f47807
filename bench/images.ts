import { mkdirSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CriImages } from "../src/adapters/cri/cri-images.ts";
import type { CriRuntime } from "../src/adapters/cri/cri-runtime.ts";
import { findInPath } from "../src/adapters/embedded/daemon.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { fixed } from "../src/lib/live.ts";
import { silent } from "../src/lib/log.ts";
import { REGISTRY_USER, TestRegistry, whyNoRegistry } from "../test/support/registry.ts";
import { fillingLayer, shellLayer } from "../test/support/registry-image.ts";
import { RAW_CGROUP, rawPod, removeRaw } from "./raw.ts";
import { median, type Row } from "./table.ts";

const IMAGES = 20;
const PODS = 40;
const LAYER_BYTES = 5 * 1024 * 1024;
const ROUNDS = 3;
const clock = new SystemClock();
const { signal } = new AbortController();

interface Places {
  readonly pods: string;
  readonly state: string;
  readonly work: string;
  /** How many pods the bare client starts at once. */
  readonly concurrency: number;
  say(text: string): void;
}

/** 20 new images for 40 pods, all running, beside a bare CRI client that pulls one at a time, as the agent does. */
export async function measureImages(runtime: CriRuntime, places: Places): Promise<readonly Row[]> {
  const why = whyNoRegistry();
  if (why !== undefined) {
    places.say(`no images are pulled: ${why}`);
    return [];
  }
  const registry = await TestRegistry.start(join(places.work, "registry"));
  const endpoint = `unix://${places.state}/run/containerd.sock`;
  const images = new CriImages({ clock, log: silent }, { endpoint, requestTimeoutMs: fixed(120_000) });
  const auth = Buffer.from(`${REGISTRY_USER.username}:${REGISTRY_USER.password}`).toString("base64");
  mkdirSync(join(places.state, "kubelet"), { recursive: true });
  const credentials = join(places.state, "kubelet", "config.json");
  writeFileSync(credentials, JSON.stringify({ auths: { [registry.host]: { auth } } }), { mode: 0o600 });
  const times = { agent: [] as number[], raw: [] as number[] };
  try {
    for (let round = 0; round < ROUNDS; round++) {
      times.raw.push(await bare(runtime, images, { places, names: await fill(registry, `raw${round}`) }));
      await removeRaw(runtime);
      times.agent.push(await byAgent(runtime, places, await fill(registry, `agent${round}`)));
    }
  } finally {
    unlinkSync(credentials);
    images.close();
    await registry.stop();
  }
  const [measured, raw] = [median(times.agent), median(times.raw)];
  places.say(`agent: ${times.agent.map(Math.round).join(", ")} ms; raw: ${times.raw.map(Math.round).join(", ")} ms`);
  return [{ what: `${IMAGES} images for ${PODS} pods, all running`, measured, raw, limit: raw * 1.1, unit: "ms" }];
}

/** New images in the registry; their names. */
async function fill(registry: TestRegistry, set: string): Promise<readonly string[]> {
  const shell = shellLayer(findInPath("busybox", process.env["PATH"]) ?? "");
  const names = Array.from({ length: IMAGES }, (_, index) => `bench/${set}-${index}`);
  for (const name of names) await registry.add(name, [shell, fillingLayer(name.replace("/", "-"), LAYER_BYTES)]);
  return names.map((name) => `${registry.host}/${name}:1`);
}

/** Each image is pulled once, one after the other; a pod is made once its image is there. */
async function bare(
  runtime: CriRuntime,
  images: CriImages,
  { places, names }: { places: Places; names: readonly string[] },
): Promise<number> {
  const began = Date.now();
  const pulled = new Map<string, Promise<unknown>>();
  let before: Promise<unknown> = Promise.resolve();
  for (const name of names) {
    before = before.then(() => images.pullImage(name, { auth: REGISTRY_USER }, { signal }));
    pulled.set(name, before);
  }
  const left = Array.from({ length: PODS }, (_, index) => index);
  const raw = { logs: join(places.work, "raw-images"), cgroup: RAW_CGROUP, command: ["sleep", "100000"] };
  let last = began;
  const worker = async (): Promise<void> => {
    for (let index = left.shift(); index !== undefined; index = left.shift()) {
      const image = names[index % IMAGES] ?? "";
      await pulled.get(image);
      const from = Date.now();
      const { running } = await rawPod(runtime, `raw-image-${index}`, { ...raw, image });
      last = Math.max(last, from + running);
    }
  };
  await Promise.all(Array.from({ length: places.concurrency }, worker));
  return last - began;
}

async function byAgent(runtime: CriRuntime, places: Places, names: readonly string[]): Promise<number> {
  const files = Array.from({ length: PODS }, (_, index) => `image${index}.json`);
  for (const [index, file] of files.entries()) {
    const container = { name: "app", image: names[index % IMAGES], command: ["sleep", "100000"] };
    const spec = { terminationGracePeriodSeconds: 1, containers: [container] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: `image${index}` }, spec };
    writeFileSync(join(places.work, file), JSON.stringify(pod));
  }
  const began = Date.now();
  for (const file of files) renameSync(join(places.work, file), join(places.pods, file));
  // Seldom, and not of the agent: asking it would take part of the CPU that it is measured by.
  const running = async (): Promise<readonly string[]> =>
    (await runtime.listContainers({}, { signal })).filter(({ state }) => state === "running").map(({ id }) => id);
  while ((await running()).length < PODS) await clock.sleep(200);
  const started = await Promise.all((await running()).map((id) => runtime.containerStatus(id, { signal })));
  const took = Math.max(...started.map(({ startedAt }) => startedAt)) - began;
  for (const file of files) unlinkSync(join(places.pods, file));
  while ((await runtime.listSandboxes({}, { signal })).length > 0) await clock.sleep(50);
  return took;
}
