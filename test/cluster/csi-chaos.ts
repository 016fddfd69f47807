/**
 * Volumes of a CSI driver while the agent and the driver are killed, the driver fails, hangs and forgets, and the API
 * server is away, at random points, and pods come and go: nothing that was written is lost, nothing stays mounted, and
 * what one pod may have is never in two. KUBELET_CHAOS_SEED repeats a run, KUBELET_CHAOS_FAULTS makes it longer.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { messageOf } from "../../src/lib/errors.ts";
import type { Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster } from "../support/cluster-site.ts";
import { makeClaim, shell, volumesOf } from "../support/csi-claims.ts";
import { LoopCsiProcess, whyNoLoopCsi } from "../support/loop-csi/process.ts";
import { chooseSeed, randomFrom } from "../support/random.ts";

skipWithoutCluster();
const reason = whyNoLoopCsi();
if (reason !== undefined) {
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

const seed = chooseSeed("KUBELET_CHAOS_SEED", 19);
const FAULTS = Number(process.env["KUBELET_CHAOS_FAULTS"] ?? 14);
const CONVERGE_MS = 180_000;
const DRIVER = "loop.example.com";
const MIB = 2 ** 20;
/** How often mounts are looked at, in milliseconds. */
const LOOK_MS = 50;

const random = randomFrom(seed);
const below = (limit: number): number => Math.floor(random() * limit);
const METHODS = ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"];

/** Counts in a file, one pod at a time, one line a number; what was written is on the disk before it is reported. */
const COUNT = `exec 9>/v/lock; flock 9; n=$(tail -n 1 /v/log 2>/dev/null); n=\${n:-0}
while :; do n=$((n+1)); echo $n >> /v/log; sync /v/log; echo wrote $n; sleep 0.2; done & `;
/** The same on a device. */
const COUNT_RAW = `n=$(dd if=/dev/raw bs=16 count=1 2>/dev/null | tr -cd 0-9); n=\${n:-0}
while :; do n=$((n+1)); printf '%-16s' $n | dd of=/dev/raw bs=16 conv=fsync,notrunc 2>/dev/null; echo wrote $n; sleep 0.2; done & `;

interface Disk {
  readonly name: string;
  readonly fsType?: "ext4" | "xfs";
  readonly accessModes?: readonly string[];
}
const DISKS: readonly Disk[] = [
  { name: "a", fsType: "ext4" },
  { name: "b", fsType: "xfs" },
  { name: "once", fsType: "ext4", accessModes: ["ReadWriteOncePod"] },
  { name: "raw", accessModes: ["ReadWriteOncePod"] },
];

describe(`CSI volumes in bad days, seed ${seed}`, () => {
  let site: ClusterSite;
  let agent: Program;
  let driver: LoopCsiProcess;
  let made = 0;
  /** Names of pods by disk: the newest is the last. */
  const pods = new Map<string, string[]>(DISKS.map(({ name }) => [name, []]));
  /** The highest number that a pod reported as written. */
  const written = new Map<string, number>();
  const violations = new Set<string>();
  let isOver = false;

  before(async () => {
    site = await ClusterSite.start({ controllers: true });
    mkdirSync(join(site.dir, "loop"));
    driver = new LoopCsiProcess(DRIVER, { dir: join(site.dir, "loop"), root: site.root });
    const spec = { attachRequired: false, requiresRepublish: true };
    site.apply({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec });
    agent = await join_();
    await site.nodeReady();
    await driver.start();
    for (const { name, fsType, accessModes } of DISKS) {
      driver.create(`vol-${name}`, fsType === undefined ? 4 * MIB : 320 * MIB);
      const volumeMode = fsType === undefined ? ("Block" as const) : ("Filesystem" as const);
      const more = { ...(accessModes && { accessModes }), volumeMode };
      makeClaim(site, { name, driver: DRIVER, source: fsType && { fsType }, ...more });
    }
  });
  after(async () => {
    isOver = true;
    await driver?.kill();
    if (site !== undefined) LoopCsiProcess.releaseLoops(site.dir);
    await site?.close();
  });
  const join_ = (): Promise<Program> => site.join([site.config({ syncFrequency: "3s" })]);

  const start = ({ name, fsType }: Disk): void => {
    const pod = `${name}-${made++}`;
    const devices = { volumeDevices: [{ name: "v", devicePath: "/dev/raw" }] };
    const main = fsType === undefined ? shell(COUNT_RAW, devices) : shell(COUNT);
    const grace = { terminationGracePeriodSeconds: 1 };
    site.apply(site.bound(pod, { ...volumesOf(name), ...grace, containers: [main] }));
    pods.get(name)?.push(pod);
  };
  /** The pod of a disk goes, gently or by force, and another comes. */
  const replace = (): void => {
    const disk = DISKS[below(DISKS.length)] ?? DISKS[0];
    const known = disk && pods.get(disk.name);
    const old = known?.at(-1);
    if (disk === undefined || old === undefined) return;
    note(disk.name, old);
    const force = below(3) === 0 ? ["--force", "--grace-period=0"] : [];
    site.kubectl("delete", "pod", old, "--wait=false", "--ignore-not-found", ...force);
    start(disk);
  };
  /** What a pod reported as written so far. */
  const note = (disk: string, pod: string): void => {
    const folder = join(site.dir, "logs");
    if (!existsSync(folder)) return;
    for (const name of readdirSync(folder).filter((one) => one.startsWith(`default_${pod}_`))) {
      const main = join(folder, name, "main");
      for (const file of existsSync(main) ? readdirSync(main) : []) {
        const numbers = [...readFileSync(join(main, file), "utf8").matchAll(/ wrote (\d+)$/gm)].map(([, n]) =>
          Number(n),
        );
        written.set(disk, Math.max(written.get(disk) ?? 0, ...numbers));
      }
    }
  };
  const mounts = (): readonly string[] =>
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
      .filter((path) => path.startsWith(site.root));
  const loops = (): readonly string[] =>
    execFileSync("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"], { encoding: "utf8" })
      .split("\n")
      .filter((file) => file.includes(site.dir));
  const mountsOfOnce = (): readonly string[] =>
    mounts().filter((path) => path.endsWith("/volumes/kubernetes.io~csi/pv-once/mount"));
  /** A volume that one pod may have is mounted for one pod. */
  const watch = async (): Promise<void> => {
    while (!isOver) {
      // The table is read in parts: what two reads have in common was there at the same time.
      const before = mountsOfOnce();
      const own = new Set(mountsOfOnce().filter((path) => before.includes(path)));
      if (own.size > 1) violations.add([...own].join(" and "));
      await pause(LOOK_MS);
    }
  };

  const faults: readonly (() => Promise<void>)[] = [
    async () => {
      await agent.end("SIGKILL");
      await pause(below(1500));
      agent = await join_();
    },
    async () => {
      await driver.kill();
      await pause(below(2000));
      await driver.start();
    },
    async () => {
      const method = METHODS[below(METHODS.length)] ?? "";
      driver.behave({ dies: { method, afterWork: below(2) === 0 } });
      replace();
      await until("it died, or nobody called it", () => driver.isOver, { limitMs: 8000 }).catch(() => undefined);
      driver.behave({});
      await driver.kill();
      await driver.start();
    },
    async () => {
      driver.behave({ chaos: 0.4 });
      replace();
      replace();
      await pause(5000);
      driver.behave({});
    },
    async () => {
      driver.behave({ hanging: [METHODS[below(METHODS.length)] ?? ""] });
      replace();
      await pause(below(4000));
      if (below(2) === 0) {
        await agent.end("SIGKILL");
        agent = await join_();
      }
      driver.behave({});
    },
    async () => {
      replace();
      await site.plane.killApiServer();
      await pause(below(4000));
      await site.plane.startApiServer();
    },
  ];

  test("nothing is lost, leaked or shared", { timeout: 600_000 }, async (t) => {
    void watch();
    for (const disk of DISKS) start(disk);
    for (const disk of DISKS) await site.podReady(pods.get(disk.name)?.at(-1) ?? "");
    for (let round = 0; round < FAULTS; round++) {
      const which = below(faults.length);
      t.diagnostic(`fault ${round}: ${which}`);
      await faults[which]?.().catch((error: unknown) => t.diagnostic(messageOf(error)));
      await pause(below(1500));
      if (below(2) === 0) replace();
    }
    driver.behave({});
    if (driver.isOver) await driver.start();
    const newest = DISKS.map(({ name }) => pods.get(name)?.at(-1) ?? "");
    for (const pod of newest) await site.podReady(pod);
    await pause(1000);
    await until("every disk was written", () => {
      for (const { name } of DISKS) for (const pod of pods.get(name) ?? []) note(name, pod);
      return DISKS.every(({ name }) => (written.get(name) ?? 0) > 0);
    });
    await site.removePods(...[...pods.values()].flat());
    const folder = join(site.root, "plugins/kubernetes.io/csi", DRIVER);
    const stages = (): readonly string[] => (existsSync(folder) ? readdirSync(folder) : []);
    const left = (): readonly string[] => [...mounts().filter((path) => path.includes("csi")), ...loops(), ...stages()];
    await until("nothing is mounted or staged", () => left().length === 0, {
      limitMs: CONVERGE_MS,
      seen: () => [left(), agent.stderr.slice(-3000)],
    });
    isOver = true;
    assert.deepEqual([...violations], [], "a volume for one pod was in two");
    for (const disk of DISKS) checkData(disk);
    const twice = driver.calls().filter(({ inFlight = 0, volumeId }) => volumeId !== "" && inFlight > 1);
    assert.deepEqual(twice, [], "two calls of a kind for a volume at a time");
  });

  /** Every number is there, up to at least the last that was reported. */
  const checkData = ({ name, fsType }: Disk): void => {
    const image = join(driver.options.storage, `vol-${name}.img`);
    const last = written.get(name) ?? 0;
    assert.ok(last > 0, `${name} was written`);
    if (fsType === undefined) {
      const text = readFileSync(image).subarray(0, 16).toString();
      assert.ok(Number.parseInt(text, 10) >= last, `${name}: ${text} on the disk, ${last} reported`);
      return;
    }
    const dir = mkdtempSync(join(site.dir, "check-"));
    execFileSync("mount", ["-o", "loop", image, dir]);
    try {
      const lines = readFileSync(join(dir, "log"), "utf8").trim().split("\n").map(Number);
      assert.deepEqual(
        lines,
        lines.map((_, at) => at + 1),
        `${name}: a number is missing`,
      );
      assert.ok(lines.length >= last, `${name}: ${lines.length} on the disk, ${last} reported`);
    } finally {
      execFileSync("umount", [dir]);
      rmdirSync(dir);
    }
  };
});
