/** Disks of a network on a running agent: iSCSI with tgt and open-iscsi, Fibre Channel with disks of scsi_debug. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { ISCSIVolumeSource, Volume } from "../../src/model/generated/types.ts";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { said } from "../integration/support/told.ts";
import { pause, SLOWNESS, until } from "../integration/support/until.ts";
import { IscsiTarget, whyNoIscsi } from "../support/iscsi-target.ts";
import { randomFrom } from "../support/random.ts";

requireMachine();
const reason = whyNoIscsi();

describe("disks of a network", { skip: reason ?? false }, () => {
  const site = new Site();
  const target = new IscsiTarget(site.dir);
  let agent: Agent;
  const plugins = join(site.state, "kubelet/plugins/kubernetes.io");
  const iscsi = (more: Partial<ISCSIVolumeSource> = {}): Volume => ({
    name: "disk",
    iscsi: { targetPortal: "127.0.0.1", iqn: target.iqn, lun: 1, ...more },
  });
  /** A pod that runs a script with the disk at /data. */
  const write = (pod: string, script: string, volume: Volume = iscsi()): void => {
    const mount = { volumeMounts: [{ name: volume.name, mountPath: "/data" }] };
    site.write(manifest(pod, { containers: [shell("main", forever(script), mount)], volumes: [volume] }));
  };
  const remove = async (pod: string, limitMs = 60_000): Promise<void> => {
    site.remove(pod);
    await until(`${pod} is gone`, async () => (await site.find(pod)) === undefined, { limitMs });
  };
  const mounts = (): readonly string[] =>
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
      .filter((path) => path.startsWith(site.state) && /iscsi|\/fc\/|~fc\//.test(path));
  /** What is mounted at the stage of a disk. */
  const staged = (): string =>
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .find((line) => (line.split(" ")[4] ?? "").includes("/plugins/kubernetes.io/iscsi/"))
      ?.split(" - ")[1]
      ?.split(" ")[1] ?? "";
  const detached = (): Promise<true> =>
    until("the disk is detached", () => target.sessions().length === 0 && mounts().length === 0, {
      seen: () => [...target.sessions(), ...mounts()].join("\n"),
      limitMs: 60_000,
    });

  before(async () => {
    await target.start();
    agent = await site.up();
  });
  after(async () => {
    target.plug();
    await site.close();
    target.close();
  });

  it("are logged in to, made, mounted once and shared; the last pod logs out", async () => {
    write("one", "echo kept > /data/file; sync; echo written");
    await said(site, "one", /written/);
    const stage = join(plugins, `iscsi/iface-default/127.0.0.1:3260-${target.iqn}-lun-1`);
    assert.ok(mounts().includes(stage), mounts().join("\n"));
    assert.equal(target.disks().length, 1, "only the unit that is wanted");
    write("two", "cat /data/file; echo end");
    assert.match(await said(site, "two", /end/), /^kept/m);
    write("other", "echo end", iscsi({ lun: 2 }));
    await said(site, "other", /end/);
    assert.equal(target.sessions().length, 1);
    await remove("one");
    await remove("two");
    await until("only the other disk is left", () => target.disks().every((name) => name.endsWith("-lun-2")));
    assert.equal(target.sessions().length, 1, "the other disk needs it");
    await agent.end("SIGKILL");
    agent = await site.up();
    await remove("other");
    await detached();
    assert.equal(existsSync(stage), false);
    assert.deepEqual(target.disks(), []);
  });

  it("of a target with a password: the Secret's, and its refusal without", async () => {
    target.protect("me", "hush-hush-12");
    write("open", "echo end");
    await site.event("FailedMount", "open", /MountVolume\.WaitForAttach failed .*authorization failure/s);
    await remove("open");
    const stringData = { "node.session.auth.username": "me", "node.session.auth.password": "hush-hush-12" };
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "chap" }, stringData };
    writeFileSync(site.file("chap.json"), JSON.stringify(secret));
    write("closed", "echo end", iscsi({ chapAuthSession: true, secretRef: { name: "chap" } }));
    await said(site, "closed", /end/);
    await remove("closed");
    await detached();
    target.unprotect("me");
    for (const text of [agent.stdout, agent.stderr, JSON.stringify(await site.events())])
      assert.doesNotMatch(text, /hush/);
  });

  it("over two portals and with an initiator name of its own", async () => {
    write("two-ways", "echo end", iscsi({ portals: ["127.0.0.2"], initiatorName: "iqn.2026-01.example.test:own" }));
    await said(site, "two-ways", /end/);
    assert.equal(target.sessions().length, 2);
    await remove("two-ways");
    await detached();
    const { stdout } = spawnSync("iscsiadm", ["-m", "iface"], { encoding: "utf8" });
    assert.doesNotMatch(stdout, /127\.0\.0\.1:3260:disk/);
  });

  it("over two portals are one multipath device, which goes with the disk", async (t) => {
    writeFileSync("/etc/multipath.conf", "defaults {\n  find_multipaths no\n}\nblacklist {\n  devnode nvme\n}\n");
    const daemon = spawn("multipathd", ["-d", "-s"], { stdio: "ignore" });
    t.after(() => {
      daemon.kill("SIGKILL");
      rmSync("/run/multipathd.pid", { force: true });
    });
    await until("multipathd answers", () => spawnSync("multipathd", ["show", "status"]).status === 0);
    write("paths", "echo end", iscsi({ portals: ["127.0.0.2"] }));
    await said(site, "paths", /end/);
    assert.match(staged(), /^\/dev\/(dm-\d+|mapper\/\S+)$/);
    await remove("paths");
    await detached();
    assert.equal(readdirSync("/sys/block").filter((name) => name.startsWith("dm-")).length, 0);
  });

  it("of a target that is gone: the agent answers, and the pod is deleted once the kernel gives up", async () => {
    write("lost", "while :; do date > /data/clock; sync; sleep 1; done & echo end");
    await said(site, "lost", /end/);
    target.unplug();
    await pause(2000 * SLOWNESS);
    for (const command of [["explain", "lost"], ["ps"]]) {
      const began = performance.now();
      assert.equal((await site.run(...command)).code, 0);
      assert.ok(performance.now() - began < 10_000 * SLOWNESS, `${command.join(" ")} answers`);
    }
    write("new", "echo end", iscsi({ lun: 2, targetPortal: "127.0.0.3" }));
    await site.event("FailedMount", "new", /WaitForAttach failed|has not ended after 30 s/);
    await remove("new");
    await remove("lost", 180_000);
    target.plug();
    await detached();
  });

  it("kill -9 at any time: no data is lost, no session and no mount is left", async () => {
    const random = randomFrom(11);
    for (let round = 0; round < 3; round++) {
      write("life", `echo ${round} >> /data/rounds; sync; echo round-${round}-end`);
      await pause(random() * 2000 * SLOWNESS);
      await agent.end("SIGKILL");
      agent = await site.up();
      await said(site, "life", new RegExp(`round-${round}-end`));
      site.remove("life");
      await pause(random() * 1000 * SLOWNESS);
      await agent.end("SIGKILL");
      agent = await site.up();
      await until("life is gone", async () => (await site.find("life")) === undefined, { limitMs: 60_000 });
    }
    await detached();
    write("life", "sort -u /data/rounds | tr '\\n' ' '; echo end");
    assert.match(await said(site, "life", /end/), /0 1 2 end/);
    await remove("life");
    await detached();
  });

  it("of Fibre Channel by an identifier: found by a scan, mounted, and given back to the bus", async (t) => {
    const { status, stderr } = spawnSync("modprobe", ["scsi_debug", "dev_size_mb=16"], { encoding: "utf8" });
    if (status !== 0) return t.skip(`the kernel has no scsi_debug: ${stderr.trim()}`);
    t.after(async () => {
      await until("scsi_debug is unloaded", () => spawnSync("modprobe", ["-r", "scsi_debug"]).status === 0);
    });
    const link = await until("udev has seen the disk", () => scsiDebugLink());
    const wwid = link.replace(/^scsi-/, "");
    write("fibre", "echo kept > /data/file; sync; echo end", { name: "disk", fc: { wwids: [wwid] } });
    await said(site, "fibre", /end/);
    assert.ok(mounts().includes(join(plugins, "fc", wwid)), mounts().join("\n"));
    await remove("fibre");
    await until("the disk is given back", () => mounts().length === 0 && scsiDebugLink() === undefined);
    write("fibre", "cat /data/file; echo end", { name: "disk", fc: { wwids: [wwid] } });
    assert.match(await said(site, "fibre", /end/), /^kept/m);
    await remove("fibre");
    await until("nothing is mounted", () => mounts().length === 0);
  });
});

/** The link of udev by the identifier of the disk that scsi_debug pretends. */
function scsiDebugLink(): string | undefined {
  const name = readdirSync("/sys/block").find((one) => {
    const model = `/sys/block/${one}/device/model`;
    return existsSync(model) && readFileSync(model, "utf8").trim() === "scsi_debug";
  });
  if (name === undefined) return undefined;
  const { stdout } = spawnSync("udevadm", ["info", "--query=symlink", `--name=/dev/${name}`], { encoding: "utf8" });
  return /disk\/by-id\/(scsi-3\w+)(?=\s|$)/.exec(stdout)?.[1];
}
