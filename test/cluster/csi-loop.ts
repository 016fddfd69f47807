/** Volumes of a driver that really mounts: ext4 and XFS on loop devices, on a real API server. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { claimStatus, grow, makeClaim, shell, volumesOf } from "../support/csi-claims.ts";
import { LoopCsiProcess, whyNoLoopCsi } from "../support/loop-csi/process.ts";

skipWithoutCluster();
const reason = whyNoLoopCsi();
if (reason !== undefined) {
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

const DRIVER = "loop.example.com";
const AGAIN = "again.example.com";
const MIB = 2 ** 20;

describe("CSI volumes on loop devices", () => {
  let site: ClusterSite;
  let agent: Program;
  let driver: LoopCsiProcess;
  let again: LoopCsiProcess;
  // What cannot be watched is looked at every two seconds instead of every minute.
  const config = { syncFrequency: "2s", volumeStatsAggPeriod: "1s" };
  before(async () => {
    site = await ClusterSite.start({ controllers: true, scheduler: true });
    const { root } = site;
    for (const name of ["loop", "again"]) mkdirSync(join(site.dir, name));
    driver = new LoopCsiProcess(DRIVER, { dir: join(site.dir, "loop"), root });
    again = new LoopCsiProcess(AGAIN, { dir: join(site.dir, "again"), root });
    const object = (name: string, spec: object): void =>
      site.apply({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name }, spec });
    object(DRIVER, { attachRequired: false, fsGroupPolicy: "File" });
    object(AGAIN, { attachRequired: false, requiresRepublish: true });
    const parameters = { provisioner: DRIVER, allowVolumeExpansion: true };
    site.apply({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "grows" }, ...parameters });
    agent = await start();
    await site.nodeReady();
    await Promise.all([driver.start(), again.start()]);
    await until("both drivers are on the CSINode", () => {
      const { spec } = site.get<{ spec: { drivers?: readonly object[] } }>("csinode", site.nodeName);
      return spec.drivers?.length === 2;
    });
  });
  const start = (): Promise<Program> =>
    site.join([site.config(config), `--client-ca-file=${join(site.plane.dir, "pki/ca.crt")}`]);
  after(async () => {
    await driver?.kill();
    await again?.kill();
    if (site !== undefined) LoopCsiProcess.releaseLoops(site.dir);
    await site?.close();
  });

  const make = (name: string, mib: number, more: Partial<Parameters<typeof makeClaim>[1]> = {}): void => {
    (more.driver === AGAIN ? again : driver).create(`vol-${name}`, mib * MIB);
    makeClaim(site, { name, driver: DRIVER, size: `${mib}Mi`, storageClass: "grows", ...more });
  };
  const podDir = (pod: Pod): string => join(site.root, "pods", pod.metadata.uid ?? "none");
  const mountOf = (pod: Pod, name: string): string => join(podDir(pod), `volumes/kubernetes.io~csi/pv-${name}/mount`);
  /** Lines of the kernel's table, of mounts below the agent's root only. */
  const mountsWith = (part: string): readonly string[] =>
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(site.root) && line.includes(part));
  const loops = (): string =>
    execFileSync("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"], { encoding: "utf8" })
      .split("\n")
      .filter((file) => file.startsWith(site.dir))
      .join("\n");
  const nothingLeft = async (name: string): Promise<void> => {
    const seen = (): unknown => [mountsWith(`pv-${name}`), loops(), agent.stderr.slice(-1500)];
    await until(
      `nothing is left of ${name}`,
      () => mountsWith(`pv-${name}/`).length === 0 && !loops().includes(`vol-${name}.img`),
      { limitMs: 60_000, seen },
    );
  };

  for (const fsType of ["ext4", "xfs"] as const) {
    test(`${fsType}: what one pod writes the next one reads, and nothing stays mounted`, async () => {
      make(fsType, 320, { source: { fsType }, mountOptions: ["noatime"] });
      const writer = shell("echo kept > /v/file; sync /v/file; stat -c %g /v/file");
      const fsGroup = { securityContext: { fsGroup: 4242 } };
      site.apply(testPod(`writer-${fsType}`, { ...volumesOf(fsType), containers: [writer], ...fsGroup }));
      const pod = await site.podReady(`writer-${fsType}`);
      const [line = ""] = mountsWith(mountOf(pod, fsType));
      assert.match(line, new RegExp(`noatime.* - ${fsType} /dev/loop`));
      await until("its words", () => site.log(pod).includes("4242"));
      await site.removePods(`writer-${fsType}`);
      await nothingLeft(fsType);
      site.apply(testPod(`reader-${fsType}`, { ...volumesOf(fsType), containers: [shell("cat /v/file")] }));
      const reader = await site.podReady(`reader-${fsType}`);
      await until("its words", () => site.log(reader).includes("kept"));
      await site.removePods(`reader-${fsType}`);
      await nothingLeft(fsType);
    });
  }

  test("a part of a volume, a read-only volume and what is mounted later in it are as asked", async () => {
    make("parts", 320, { source: { fsType: "ext4" } });
    const volumeMounts = [
      { name: "v", mountPath: "/v", mountPropagation: "HostToContainer" },
      { name: "v", mountPath: "/part", subPath: "a/b" },
      { name: "v", mountPath: "/read", readOnly: true },
    ];
    const script = "echo x > /part/file; cat /v/a/b/file; echo y > /read/no || echo read-only; mkdir /v/later";
    site.apply(testPod("parts", { ...volumesOf("parts"), containers: [shell(script, { volumeMounts })] }));
    const pod = await site.podReady("parts");
    await until("its words", () => /x[\s\S]*read-only/.test(site.log(pod)));
    // Mounted on the host while the container runs.
    const later = join(mountOf(pod, "parts"), "later");
    await until("the directory", () => existsSync(later));
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", later]);
    try {
      execFileSync("touch", [join(later, "seen")]);
      const seen = site.kubectl("exec", "parts", "--", "ls", "/v/later");
      assert.match(seen, /seen/);
    } finally {
      execFileSync("umount", [later]);
    }
    const read = { ...volumesOf("parts", { readOnly: true }), containers: [shell("touch /v/no || echo refused")] };
    site.apply(testPod("only-reads", read));
    const reader = await site.podReady("only-reads");
    await until("its words", () => site.log(reader).includes("refused"));
    assert.match(mountsWith(mountOf(reader, "parts"))[0] ?? "", / ro,/);
    await site.removePods("parts", "only-reads");
    await nothingLeft("parts");
  });

  test("a volume with ReadWriteOncePod is never in two pods of the node", async () => {
    make("once", 320, { accessModes: ["ReadWriteOncePod"] });
    // By hand to the node: the scheduler would keep the second one away itself.
    const spec = { nodeName: site.nodeName, ...volumesOf("once"), containers: [shell("true")] };
    site.apply(testPod("first", spec));
    await site.podReady("first");
    site.apply(testPod("second", spec));
    const words =
      /MountVolume.SetUp failed for volume "pv-once" : .*ReadWriteOncePod access mode and is already in use/;
    await until("the second one is refused", () =>
      words.test(site.kubectl("get", "events", "--field-selector=involvedObject.name=second")),
    );
    assert.equal(mountsWith("/volumes/kubernetes.io~csi/pv-once/mount").length, 1);
    await site.removePods("first");
    await site.podReady("second");
    await site.removePods("second");
    await nothingLeft("once");
  });

  test("a volume grows while a pod uses it: the claim follows, and the filesystem is larger", async () => {
    make("online", 320, { source: { fsType: "xfs" } });
    site.apply(testPod("online", { ...volumesOf("online"), containers: [shell("df -m /v")] }));
    const pod = await site.podReady("online");
    driver.create("vol-online", 640 * MIB);
    grow(site, "online", "640Mi");
    await until("the claim has its new size", () => claimStatus(site, "online").capacity?.["storage"] === "640Mi", {
      seen: () => [claimStatus(site, "online"), agent.stderr.slice(-1500)],
    });
    const { allocatedResourceStatuses, conditions = [] } = claimStatus(site, "online");
    assert.deepEqual([allocatedResourceStatuses, conditions], [undefined, []]);
    const size = Number(site.kubectl("exec", "online", "--", "sh", "-c", "df -m /v | tail -1 | awk '{print $2}'"));
    assert.ok(size > 500, `${size} MiB`);
    for (const about of ["pod/online", "persistentvolumeclaim/online"]) {
      const [kind = "", name = ""] = about.split("/");
      const selector = `--field-selector=reason=FileSystemResizeSuccessful,involvedObject.name=${name}`;
      // Events are sent beside the claim's status.
      await until(`an event of ${about}`, () =>
        site.kubectl("get", "events", "-o", "json", selector).toLowerCase().includes(`"kind": "${kind}"`),
      );
    }
    assert.ok(existsSync(mountOf(pod, "online")));
    await site.removePods("online");
    await nothingLeft("online");
  });

  test("a volume that grew while nobody used it is grown before its next pod starts", async () => {
    // XFS: a mounted ext4 grows only with CAP_SYS_RESOURCE, which not every machine of the tests has.
    make("offline", 320, { source: { fsType: "xfs" } });
    site.apply(testPod("before", { ...volumesOf("offline"), containers: [shell("true")] }));
    await site.podReady("before");
    await site.removePods("before");
    await nothingLeft("offline");
    driver.create("vol-offline", 640 * MIB);
    grow(site, "offline", "640Mi");
    site.apply(
      testPod("later", { ...volumesOf("offline"), containers: [shell("df -m /v | tail -1 | awk '{print $2}'")] }),
    );
    const pod = await site.podReady("later");
    await until("its words", () => Number.parseInt(site.log(pod), 10) > 500, { seen: () => site.log(pod) });
    assert.equal(claimStatus(site, "offline").capacity?.["storage"], "640Mi");
    await site.removePods("later");
    await nothingLeft("offline");
  });

  test("a size that the driver refuses is the claim's condition, and the pod's event", async () => {
    make("refused", 320, { source: { fsType: "ext4" } });
    site.apply(testPod("refused", { ...volumesOf("refused"), containers: [shell("true")] }));
    await site.podReady("refused");
    // The controller said so, but the volume has not grown.
    grow(site, "refused", "640Mi");
    await until(
      "it is infeasible",
      () => claimStatus(site, "refused").allocatedResourceStatuses?.["storage"] === "NodeResizeInfeasible",
    );
    const condition = claimStatus(site, "refused").conditions?.find(({ type }) => type === "NodeResizeError");
    assert.match(condition?.message ?? "", /failed to expand pvc with .*code = OutOfRange desc = the volume has only/);
    const selector = "--field-selector=involvedObject.name=refused,reason=VolumeResizeFailed";
    const words = /NodeExpandVolume.NodeExpandVolume failed for volume "pv-refused"/;
    // It comes after the claim's status.
    await until("the event", () => words.test(site.kubectl("get", "events", selector)));
    await site.removePods("refused");
    await nothingLeft("refused");
  });

  test("a block volume lies where Kubernetes has it, is locked, grows, and keeps its data", async () => {
    make("raw", 16, { volumeMode: "Block" });
    const volumeDevices = [{ name: "v", devicePath: "/dev/raw" }];
    const write = shell("test -b /dev/raw && printf data | dd of=/dev/raw conv=fsync && echo written", {
      volumeDevices,
    });
    site.apply(testPod("raw", { ...volumesOf("raw"), containers: [write] }));
    const pod = await site.podReady("raw");
    await until("its words", () => site.log(pod).includes("written"));
    const base = join(site.root, "plugins/kubernetes.io/csi/volumeDevices");
    const uid = pod.metadata.uid ?? "";
    const link = join(podDir(pod), "volumeDevices/kubernetes.io~csi/pv-raw");
    assert.equal(readlinkSync(link), join(base, `publish/pv-raw/${uid}`));
    assert.deepEqual(readdirSync(join(base, "pv-raw/dev")), [uid]);
    assert.ok(loops().includes(join(base, `pv-raw/dev/${uid}`)), "it is locked by a loop device");
    driver.create("vol-raw", 32 * MIB);
    grow(site, "raw", "32Mi");
    await until("the claim has its new size", () => claimStatus(site, "raw").capacity?.["storage"] === "32Mi", {
      seen: () => [claimStatus(site, "raw"), agent.stderr.slice(-1500)],
    });
    await site.removePods("raw");
    await nothingLeft("raw");
    // The agent removes its own directories once the driver has answered.
    await until("its directories are gone", () => !existsSync(link) && !readdirSync(base).includes("pv-raw"));
    const image = readFileSync(join(driver.options.storage, "vol-raw.img"));
    assert.equal(image.subarray(0, 4).toString(), "data");
  });

  test("the driver's numbers are in the summary and in the metrics", async () => {
    make("counted", 320, { source: { fsType: "ext4" } });
    site.apply(testPod("counted", { ...volumesOf("counted"), containers: [shell("true")] }));
    await site.podReady("counted");
    interface Summary {
      readonly pods: readonly {
        readonly podRef: { readonly name: string };
        readonly volume?: readonly { readonly pvcRef?: { readonly name: string }; readonly capacityBytes: number }[];
      }[];
    }
    const proxy = `/api/v1/nodes/${site.nodeName}/proxy`;
    await until("the summary has the volume", () => {
      const { pods } = JSON.parse(site.kubectl("get", "--raw", `${proxy}/stats/summary`)) as Summary;
      const [volume] = pods.find(({ podRef }) => podRef.name === "counted")?.volume ?? [];
      return volume?.pvcRef?.name === "counted" && volume.capacityBytes > 200 * MIB;
    });
    const metric = /kubelet_volume_stats_capacity_bytes\{namespace="default",persistentvolumeclaim="counted"\} \d{9}/;
    await until("the metrics have it", () => metric.test(site.kubectl("get", "--raw", `${proxy}/metrics`)));
    assert.ok(driver.asked("NodeGetVolumeStats", "vol-counted").length > 0);
    await site.removePods("counted");
    await nothingLeft("counted");
  });

  test("a volume that its driver wants published again is, also right after a restart of the agent", async () => {
    make("again", 320, { driver: AGAIN, source: { fsType: "ext4" } });
    site.apply(testPod("again", { ...volumesOf("again"), containers: [shell("true")] }));
    await site.podReady("again");
    const published = (): number => again.asked("NodePublishVolume", "vol-again").length;
    const first = published();
    await until("it is published again", () => published() > first + 1);
    await agent.end("SIGKILL");
    const before = published();
    const staged = again.asked("NodeStageVolume", "vol-again").length;
    agent = await start();
    await until("the new agent publishes it", () => published() > before, { limitMs: 60_000 });
    await until("and again", () => published() > before + 2);
    assert.ok(again.asked("NodeStageVolume", "vol-again").length - staged <= 1, "staged once by the new agent");
    await site.removePods("again");
    await nothingLeft("again");
  });

  test("a driver that is killed between stage and publish, or forgets what it staged, is asked again", async () => {
    make("killed", 320, { source: { fsType: "ext4" } });
    driver.behave({ dies: { method: "NodePublishVolume", afterWork: false } });
    site.apply(testPod("killed", { ...volumesOf("killed"), containers: [shell("echo kept > /v/file; sync /v/file")] }));
    await until("it is dead", () => driver.isOver);
    driver.behave({});
    // It lost its stage with its life: the machine was rebooted, or somebody cleaned up.
    const [{ stagingTargetPath = "" } = {}] = driver.asked("NodeStageVolume", "vol-killed");
    execFileSync("umount", [stagingTargetPath]);
    await driver.start();
    await site.podReady("killed");
    assert.ok(driver.asked("NodeStageVolume", "vol-killed").length >= 2);
    await site.removePods("killed");
    await nothingLeft("killed");
  });

  test("an agent that finds mounts of its last life whose pod is gone tears them down", async () => {
    make("orphan", 320, { source: { fsType: "ext4" } });
    site.apply(testPod("orphan", { ...volumesOf("orphan"), containers: [shell("echo kept > /v/file; sync /v/file")] }));
    const pod = await site.podReady("orphan");
    await agent.end("SIGKILL");
    site.kubectl("delete", "pod", "orphan", "--force", "--grace-period=0");
    agent = await start();
    await nothingLeft("orphan");
    await until("its directory is gone", () => !existsSync(podDir(pod)));
  });

  test("no call of a kind was ever in flight twice for a volume", () => {
    for (const one of [driver, again]) {
      assert.deepEqual(
        one.calls().filter(({ inFlight = 0 }) => inFlight > 1),
        [],
      );
    }
  });
});
