// What monitoring and eviction cost on a node with 100 pods that do nothing: the sampler and the eviction loop alone, on
// real cgroups, in CPU time of this process. Started by bench/monitoring.ts.
import { existsSync, mkdirSync, readdirSync, rmdirSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { LinuxHost } from "../src/adapters/host/index.ts";
import { agentOptions, OptionStore, parseAgentOptions } from "../src/config/index.ts";
import { composeEviction, type PressureCondition } from "../src/eviction/index.ts";
import { manyListeners } from "../src/lib/abort.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { LiveValue } from "../src/lib/live.ts";
import { silent } from "../src/lib/log.ts";
import { Metrics } from "../src/lib/metrics.ts";
import { composeStats } from "../src/stats/index.ts";
import { observed, pod, sandbox, seen as seenContainer } from "../test/support/pods.ts";

const SECONDS = Number(process.argv[2] ?? 60);
const PODS = 100;
const ROOT = `/kubelet-bench-${process.pid}`;
const clock = new SystemClock();
const host = new LinuxHost({ clock });
const stop = manyListeners();

const uids = Array.from({ length: PODS }, (_, at) => `pod${at}`);
const idOf = (uid: string, kind: "sandbox" | "container"): string =>
  `${kind === "sandbox" ? "a" : "b"}${uid}0000000000`;
const pods = new Map(uids.map((uid) => [uid, pod(uid, uid).container("c").build()]));
const seen = new Map(
  [...pods].map(([uid, of]) => [
    uid,
    observed(
      of,
      [sandbox({ id: idOf(uid, "sandbox"), state: "ready" })],
      [seenContainer({ name: "c" }, { id: idOf(uid, "container"), state: "running" })],
    ),
  ]),
);

/** The directories of a path in every hierarchy. */
function directories(path: string): string[] {
  return host.cgroupMounts().map(({ mountpoint }) => join(mountpoint, path));
}

function removeAll(directory: string): void {
  if (!existsSync(directory)) return;
  const below = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name } of below) removeAll(join(directory, name));
  rmdirSync(directory);
}

for (const uid of uids)
  for (const kind of ["sandbox", "container"] as const)
    for (const directory of directories(`${ROOT}/${uid}/${idOf(uid, kind)}`)) mkdirSync(directory, { recursive: true });
try {
  const store = new OptionStore(agentOptions, parseAgentOptions(["--root-dir=/var/lib"]).values);
  const metrics = new Metrics();
  const storage = { read: async () => new Map() };
  const stats = composeStats({
    clock,
    log: silent,
    host,
    store,
    metrics,
    runtime: { sandboxImage: async () => undefined },
    storage,
    spaces: { read: async () => undefined },
    machine: { nodeName: "n", cores: availableParallelism(), memoryBytes: totalmem() },
    images: { imageFilesystems: async () => ({ images: [], containers: [] }) },
    observer: { list: () => [...seen.values()] },
    cgroups: { parentOf: ({ metadata }) => `${ROOT}/${metadata.uid}` },
    classes: { all: ROOT, burstable: `${ROOT}/burstable`, bestEffort: `${ROOT}/besteffort` },
    podOf: (uid) => pods.get(uid),
    oomKills: { of: () => 0 },
  });
  const eviction = composeEviction(
    {
      clock,
      log: silent,
      metrics,
      store,
      nodeName: "n",
      sampler: stats.sampler,
      storage,
      pool: {
        uids: () => uids,
        worker: (uid) => {
          const of = pods.get(uid);
          const life = { phase: "syncing", stop: undefined, isWanted: true };
          return of && { allocated: of, life, isAdopted: true, evict: () => undefined };
        },
        isFinished: () => true,
        discard: async () => undefined,
      },
      observer: { get: (uid) => seen.get(uid) },
      journal: { of: () => ({ event: () => undefined }) },
      event: () => undefined,
    },
    new LiveValue<readonly PressureCondition[]>([]),
    stop.signal,
  );
  const loops = [...stats.loops, ...eviction.loops].map(({ run }) => run(stop.signal).catch(() => undefined));
  await clock.sleep(5000);
  const before = process.cpuUsage();
  const began = clock.now().mono;
  await clock.sleep(SECONDS * 1000);
  const { user, system } = process.cpuUsage(before);
  const share = ((user + system) / 1000 / (clock.now().mono - began)) * 100;
  process.stdout.write(`monitoring and eviction, ${PODS} pods: ${share.toFixed(2)} % of a core over ${SECONDS} s\n`);
  stop.abort();
  await Promise.all(loops);
} finally {
  for (const directory of directories(ROOT)) removeAll(directory);
}
