// Measures volumes on real mounts: what four of them add to a pod's start, what 200 pods cost when nothing happens, and
// how long a change takes to reach 100 pods. Part of `npm run bench`; by itself: node --import tsx bench/volumes.ts
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { collectGarbage } from "../src/adapters/host/collect-garbage.ts";
import { LinuxHost } from "../src/adapters/host/index.ts";
import { LinuxVolumeHost } from "../src/adapters/host/volume-host.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { silent } from "../src/lib/log.ts";
import type { ConfigMap, Pod, Secret } from "../src/model/generated/types.ts";
import { ObjectStore } from "../src/sources/index.ts";
import { VolumeReconciler } from "../src/volumes/index.ts";
import { median, type Row } from "./table.ts";

const STARTS = 40;
const PODS = 200;
const READERS = 100;
const UPDATES = 5;
const IDLE_WINDOWS = 5;
const IDLE_SECONDS = 4;

const { signal } = new AbortController();
const metadata = (name: string): { name: string; namespace: string } => ({ name, namespace: "default" });
const settings = (value: string): ConfigMap => ({
  metadata: metadata("settings"),
  data: { value, other: "unchanged" },
});
const login: Secret = { metadata: metadata("login"), data: { password: "c2VjcmV0" } };

/** The usual four: a projected token, a ConfigMap, a Secret and an emptyDir. */
function usualPod(name: string): Pod {
  return {
    metadata: { ...metadata(name), uid: name },
    spec: {
      containers: [{ name: "app", image: "x" }],
      volumes: [
        {
          name: "token",
          projected: {
            sources: [
              { serviceAccountToken: { path: "token" } },
              { configMap: { name: "settings", items: [{ key: "other", path: "ca.crt" }] } },
              { downwardAPI: { items: [{ path: "namespace", fieldRef: { fieldPath: "metadata.namespace" } }] } },
            ],
          },
        },
        { name: "config", configMap: { name: "settings" } },
        { name: "login", secret: { secretName: "login" } },
        { name: "data", emptyDir: {} },
      ],
    },
  };
}

/** Runs all measurements below a directory that is emptied afterwards. Needs root. */
export async function measureVolumes(directory: string): Promise<readonly Row[]> {
  const root = mkdtempSync(join(directory, "volumes-"));
  const clock = new SystemClock();
  const objects = new ObjectStore();
  const publish = (value: string): void =>
    objects.apply("file", [
      { kind: "ConfigMap", object: settings(value) },
      { kind: "Secret", object: login },
    ]);
  publish("0");
  const volumes = new VolumeReconciler(
    {
      host: new LinuxVolumeHost(new LinuxHost({ clock }), clock),
      objects,
      clock,
      log: silent,
      tokens: {
        token: () =>
          Promise.resolve({ token: "t".repeat(900), refreshAt: clock.now().wall + 3_600_000, expiresAt: 10 ** 15 }),
      },
      node: { allocatable: { memory: "1Gi" }, labels: {}, syncMs: 60_000 },
      event: () => undefined,
      waiting: () => undefined,
    },
    { rootDir: root },
  );
  const names: string[] = [];
  try {
    collectGarbage();
    await clock.sleep(2000);
    // A process that does nothing at all is not free either.
    const before = await idlePercent(clock);
    const starts: number[] = [];
    for (let i = 0; i < PODS; i++) {
      const pod = usualPod(`pod-${i}`);
      const began = performance.now();
      await volumes.prepare(pod, { signal });
      if (i < STARTS) starts.push(performance.now() - began);
      names.push(`pod-${i}`);
    }
    // The agent, too, collects the garbage of a burst at once: that is no part of being idle.
    collectGarbage();
    await clock.sleep(2000);
    // What happens every few seconds is in most of them.
    const idle = await idlePercent(clock);
    // Only 100 pods are to hear of the change.
    for (const name of names.splice(READERS)) await volumes.teardown(name, { signal });
    const updates: number[] = [];
    for (let i = 1; i <= UPDATES; i++) updates.push(await timeUpdate(() => publish(`v${i}`), { root, value: `v${i}` }));
    return [
      { what: "four volumes of a pod, median", measured: median(starts), limit: 25, unit: "ms" },
      { what: `idle with ${PODS} pods of four volumes`, measured: idle, raw: before, limit: before + 0.1, unit: "%" },
      { what: `a ConfigMap changes in ${READERS} pods`, measured: median(updates), limit: 1000, unit: "ms" },
    ];
  } finally {
    for (const name of names) await volumes.teardown(name, { signal });
    rmSync(root, { recursive: true });
  }
}

/** The median of a few looks. */
async function idlePercent(clock: SystemClock): Promise<number> {
  const looks: number[] = [];
  for (let i = 0; i < IDLE_WINDOWS; i++) looks.push(await cpuPercent(clock, IDLE_SECONDS));
  return median(looks);
}

/** Of one core, over so many seconds in which nothing is done. */
async function cpuPercent(clock: SystemClock, seconds: number): Promise<number> {
  const before = process.cpuUsage();
  await clock.sleep(seconds * 1000);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e4 / seconds;
}

/** From the change until the last pod shows it. */
async function timeUpdate(change: () => void, { root, value }: { root: string; value: string }): Promise<number> {
  const file = (i: number): string => `${root}/pods/pod-${i}/volumes/kubernetes.io~configmap/config/value`;
  const began = performance.now();
  change();
  for (let i = 0; i < READERS; ) {
    if (readFileSync(file(i), "utf8") === value) i++;
    else await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return performance.now() - began;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { what, measured, limit, unit } of await measureVolumes("/var/tmp")) {
    process.stdout.write(`${what}: ${measured.toFixed(2)} ${unit} (limit ${limit} ${unit})\n`);
  }
}
