// `node --import tsx bench/csi.ts [ROUNDS]`: what volumes of a CSI driver cost. The same pods with an emptyDir and with a
// claim of the mock driver of Kubernetes, in turn, on one control plane; then the CPU of an idle agent with 200 such volumes
// and with 200 emptyDirs, in turn. CSI_PODS names another number of pods to start, CSI_IDLE_SECONDS and CSI_IDLE_ROUNDS
// another time to idle; 0 ROUNDS or 0 seconds leave that part out. Run it as root, on a machine that does nothing else.
import { mkdirSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import type { Pod } from "../src/model/generated/types.ts";
import { until } from "../test/integration/support/until.ts";
import { ClusterSite } from "../test/support/cluster-site.ts";
import { TEST_IMAGES } from "../test/support/containerd.ts";
import { claimObjects } from "../test/support/csi-claims.ts";
import { MockCsi } from "../test/support/mock-csi.ts";
import { secondsIn } from "./agent.ts";
import { isReady, Watched } from "./compare-cluster.ts";
import { median } from "./table.ts";

const ROUNDS = Number(process.argv[2] ?? 3);
const PODS = Number(process.env["CSI_PODS"] ?? 100);
/** While the agent idles: few pods, because what they cost themselves differs by more than what is measured. */
const IDLE = { pods: 20, each: 10 };
const CLAIMS = Math.max(PODS, IDLE.pods * IDLE.each);
/** Each claim is looked at once in 90 s. */
const IDLE_MS = Number(process.env["CSI_IDLE_SECONDS"] ?? 90) * 1000;
const IDLE_ROUNDS = Number(process.env["CSI_IDLE_ROUNDS"] ?? 2);
const SETTLE_MS = 15_000;
const DRIVER = "mock.example.com";
const GOALS = { start: 1.1, idlePercent: 0.1 };

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const site = await ClusterSite.start({ controllers: true });
const { root, nodeName } = site;
mkdirSync(join(root, "plugins", DRIVER), { recursive: true });
mkdirSync(join(root, "plugins_registry"), { recursive: true });
const spec = { attachRequired: false };
site.apply({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec });
// What is measured is the agent, not its limit on requests.
const agent = await site.join([site.config({ kubeAPIQPS: 500, kubeAPIBurst: 1000, maxPods: PODS + 10 })]);
const mock = MockCsi.start(DRIVER, root, [`-volumes=${CLAIMS}`, "-expand"]);
const watched = new Watched(site.plane.clients().calls);
try {
  await site.nodeReady();
  await until("the driver is registered", () => mock.calls().some(({ method }) => method.endsWith("/NodeGetInfo")));
  const claims = Array.from({ length: CLAIMS }, (_, at) => String(at + 1));
  site.create(claims.flatMap((n) => claimObjects({ name: `c${n}`, driver: DRIVER, source: { volumeHandle: n } })));
  const bound = (): number => {
    const { items } = site.get<{ items: readonly { status?: { phase?: string } }[] }>("pvc");
    return items.filter(({ status }) => status?.phase === "Bound").length;
  };
  await until("all claims are bound", () => bound() === CLAIMS, { limitMs: 300_000 });

  const podOf = (name: string, volumes: readonly object[]): Pod => {
    const volumeMounts = volumes.map((_, at) => ({ name: `v${at}`, mountPath: `/v${at}` }));
    const command = ["/bin/sleep", "100000"];
    const main = { name: "main", image: TEST_IMAGES.busybox, imagePullPolicy: "Never", command, volumeMounts };
    const named = volumes.map((volume, at) => ({ name: `v${at}`, ...volume }));
    return {
      metadata: { name, namespace: "default" },
      spec: {
        nodeName,
        terminationGracePeriodSeconds: 0,
        automountServiceAccountToken: false,
        containers: [main],
        volumes: named,
      },
    };
  };
  const start = async (
    volumesOf: (at: number) => readonly object[],
    pods = PODS,
  ): Promise<{ ms: number; cpuMs: number; names: string[] }> => {
    const names = Array.from({ length: pods }, (_, at) => `p${at}`);
    const before = secondsIn(`/proc/${agent.pid}/stat`);
    const began = performance.now();
    await Promise.all(names.map((name, at) => watched.create(podOf(name, volumesOf(at)))));
    const ended = await watched.until("all are ready", () => names.every((name) => isReady(watched.pod(name))));
    return { ms: ended - began, cpuMs: (secondsIn(`/proc/${agent.pid}/stat`) - before) * 1000, names };
  };
  const remove = async (names: readonly string[]): Promise<void> => {
    await Promise.all(names.map((name) => watched.remove(name)));
    await watched.until("all are gone", () => names.every((name) => watched.pod(name) === undefined));
    await pause(3000);
  };
  const claim = (n: number): object => ({ persistentVolumeClaim: { claimName: `c${n}` } });
  const kinds = {
    emptyDir: () => [{ emptyDir: {} }],
    claim: (at: number) => [claim(at + 1)],
  } as const;

  const times: Record<keyof typeof kinds, number[]> = { emptyDir: [], claim: [] };
  // Says more than the times on a machine that others use.
  const cpu: Record<keyof typeof kinds, number[]> = { emptyDir: [], claim: [] };
  const driverMs: number[] = [];
  // The first burst warms up what both need.
  if (ROUNDS > 0) await remove((await start(kinds.emptyDir)).names);
  for (let round = 0; round < ROUNDS; round++) {
    for (const kind of ["emptyDir", "claim"] as const) {
      const before = mock.calls().length;
      const { ms, cpuMs, names } = await start(kinds[kind]);
      times[kind].push(ms);
      cpu[kind].push(cpuMs);
      if (kind === "claim")
        driverMs.push(
          mock
            .calls()
            .slice(before)
            .reduce((sum, { micros }) => sum + micros / 1000, 0),
        );
      say(
        `${kind}: ${ms.toFixed(0)} ms, ${cpuMs.toFixed(0)} ms of CPU of the agent (load ${loadavg()[0]?.toFixed(1)})`,
      );
      await remove(names);
    }
  }

  const idle = async (volumesOf: (at: number) => readonly object[]): Promise<number> => {
    const { names } = await start(volumesOf, IDLE.pods);
    await pause(SETTLE_MS);
    const [before, calls] = [secondsIn(`/proc/${agent.pid}/stat`), mock.calls().length];
    await pause(IDLE_MS);
    const percent = ((secondsIn(`/proc/${agent.pid}/stat`) - before) / (IDLE_MS / 1000)) * 100;
    const asked = mock.calls().length - calls;
    say(`idle: ${percent.toFixed(3)} %, ${asked} calls to the driver (load ${loadavg()[0]?.toFixed(1)})`);
    await remove(names);
    return percent;
  };
  const { each } = IDLE;
  const idleKinds = {
    emptyDir: () => Array.from({ length: each }, () => ({ emptyDir: {} })),
    claim: (at: number) => Array.from({ length: each }, (_, n) => claim(at * each + n + 1)),
  } as const;
  const idlePercent: Record<keyof typeof idleKinds, number[]> = { emptyDir: [], claim: [] };
  for (let round = 0; round < (IDLE_MS === 0 ? 0 : IDLE_ROUNDS); round++) {
    for (const kind of ["emptyDir", "claim"] as const) idlePercent[kind].push(await idle(idleKinds[kind]));
  }
  const most = Math.max(
    ...mock
      .calls()
      .filter(({ volume }) => volume !== "")
      .map(({ inFlight }) => inFlight),
  );
  const own = median(driverMs);
  const ratio = (median(times.claim) - own) / median(times.emptyDir);
  const report = {
    pods: PODS,
    rounds: ROUNDS,
    load: loadavg(),
    emptyDirMs: times.emptyDir,
    claimMs: times.claim,
    driverMs: own,
    emptyDirCpuMs: cpu.emptyDir,
    claimCpuMs: cpu.claim,
    cpuMsForEachClaim: (median(cpu.claim) - median(cpu.emptyDir)) / PODS,
    ratio,
    ratioGoal: GOALS.start,
    idleVolumes: IDLE.pods * IDLE.each,
    idlePercentEmptyDir: idlePercent.emptyDir,
    idlePercentClaim: idlePercent.claim,
    idlePercentOfVolumes: mean(idlePercent.claim) - mean(idlePercent.emptyDir),
    idlePercentGoal: GOALS.idlePercent,
    mostCallsInFlight: most,
  };
  process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
} finally {
  watched.close();
  await mock.stop();
  await site.close();
}
