/** flexVolume drivers on a running agent: one that attaches loop devices, one whose filesystem is a daemon's. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Volume } from "../../src/model/generated/types.ts";
import { http } from "../integration/support/http.ts";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { said } from "../integration/support/told.ts";
import { pause, SLOWNESS, until } from "../integration/support/until.ts";
import { FlexDriverFiles } from "../support/flex-driver.ts";
import { freeze, thaw } from "../support/freeze.ts";
import { whyNoLoop } from "../support/loop-filesystem.ts";
import { randomFrom } from "../support/random.ts";

requireMachine();
const noLoop = whyNoLoop();
if (noLoop !== undefined) {
  process.stdout.write(`${noLoop}\n`);
  process.exit(77);
}
const noFuse = spawnSync("bindfs", ["--version"]).error !== undefined ? "not installed: bindfs" : undefined;

describe("flexVolume drivers", () => {
  const site = new Site();
  const flex = new FlexDriverFiles();
  let agent: Agent;
  const up = async (): Promise<Agent> => site.up([`--volume-plugin-dir=${flex.exec}`]);
  const kubelet = join(site.state, "kubelet");
  const volume = (driver: "loop" | "fuse", name = "disk"): Volume => ({
    name,
    flexVolume: { driver: `test.example/${driver}`, fsType: "ext4" },
  });
  /** A pod that runs a script with the volume at /data. */
  const write = (pod: string, script: string, of: Volume = volume("loop")): void => {
    const mount = { volumeMounts: [{ name: of.name, mountPath: "/data" }] };
    site.write(manifest(pod, { containers: [shell("main", forever(script), mount)], volumes: [of] }));
  };
  const remove = async (pod: string): Promise<void> => {
    site.remove(pod);
    await site.gone(pod);
  };
  const mounts = (): readonly string[] =>
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
      .filter((target) => /flexvolume|test\.example~/.test(target) && target.startsWith(kubelet));

  before(async () => {
    flex.install("loop");
    flex.install("fuse");
    agent = await up();
  });
  after(async () => {
    await site.close();
    flex.close();
  });

  it("attaches, makes, mounts and shares a disk, keeps its data, and detaches it with the last pod", async () => {
    write("one", "echo kept > /data/file; sync; echo written");
    await said(site, "one", /written/);
    write("two", "cat /data/file; echo end");
    assert.match(await said(site, "two", /end/), /^kept/m);
    assert.equal(flex.calls().filter((call) => call.startsWith("mountdevice ")).length, 1);
    assert.deepEqual(
      mounts()
        .map((path) => path.replace(/.*\/(plugins|pods)\//, "$1/"))
        .sort().length,
      3,
    );
    await remove("one");
    assert.equal(flex.attached().length, 1);
    await agent.end("SIGKILL");
    agent = await up();
    await remove("two");
    await until("the disk is detached", () => flex.attached().length === 0 && mounts().length === 0);
    write("three", "cat /data/file; echo end");
    assert.match(await said(site, "three", /end/), /^kept/m);
    await remove("three");
    await until("the disk is detached", () => flex.attached().length === 0);
  });

  for (const [how, words] of [
    ["garbage", /mountdevice command failed: the driver printed "what\?" instead of JSON \(exit status 0\)/],
    ["silent", /mountdevice command failed: the driver printed nothing instead of JSON \(exit status 3\)/],
  ] as const) {
    it(`says what is wrong with a driver: ${how}; and goes on when it is right`, async () => {
      flex.misbehave(how, "mountdevice");
      write("bad", "echo end");
      const { message } = await site.event("FailedMount", "bad", words);
      assert.match(message, /^MountVolume\.MountDevice failed for volume "disk" : /);
      assert.match((await site.run("explain", "bad")).stdout, words);
      flex.behave();
      await said(site, "bad", /end/);
      await remove("bad");
      await until("the disk is detached", () => flex.attached().length === 0);
    });
  }

  it("a driver that hangs keeps neither the agent nor the deletion of its pod", async () => {
    flex.misbehave("hang", "mountdevice");
    write("stuck", "echo end");
    await until("the driver is called", () => flex.calls().at(-1)?.startsWith("mountdevice "));
    const shown = await site.pod("stuck", "is shown to wait", ({ next }) => /may not answer/.test(next?.why ?? ""));
    assert.match(shown.next?.why ?? "", /^disk since .*: being set up for 1\d s: /);
    const asked = performance.now();
    await site.list();
    assert.ok(performance.now() - asked < 10_000 * SLOWNESS, "the agent answers");
    const began = performance.now();
    await remove("stuck");
    assert.ok(performance.now() - began < 20_000 * SLOWNESS, "the pod is gone");
    flex.behave();
    await until("nothing is left", () => flex.attached().length === 0 && mounts().length === 0);
    assert.equal(spawnSync("pgrep", ["-f", `${flex.dir}.*mountdevice`]).status, 1, "no driver is left");
  });

  it("a driver that is installed while its pod waits is used at once; one that is removed keeps its volume", async () => {
    flex.uninstall("loop");
    write("early", "echo end");
    await site.event("FailedMount", "early", /test\.example\/loop is not installed in .*: no volume plugin matched/);
    flex.install("loop");
    await said(site, "early", /end/);
    flex.uninstall("loop");
    site.remove("early");
    await site.event(
      "FailedUnMount",
      "early",
      /UnmountVolume\.TearDown failed for volume "disk" : .* is not installed/,
    );
    assert.ok(mounts().length > 0);
    flex.install("loop");
    await site.gone("early");
    await until("the disk is detached", () => flex.attached().length === 0 && mounts().length === 0);
  });

  it("a filesystem that hangs: the agent answers, its pod says so, and is deleted", {
    skip: noFuse ?? false,
  }, async () => {
    write("far", "echo hello > /data/file; echo end", volume("fuse", "net"));
    await said(site, "far", /end/);
    const daemon = Number(
      readdirSync("/proc").find((pid) => {
        if (!/^\d+$/.test(pid)) return false;
        const text = spawnSync("cat", [`/proc/${pid}/cmdline`], { encoding: "utf8" }).stdout;
        return text.startsWith("bindfs") && text.includes(flex.dir);
      }),
    );
    await freeze(daemon);
    try {
      for (const command of [["explain", "far"], ["ps"]]) {
        const began = performance.now();
        const { code, stderr } = await site.run(...command);
        assert.equal(code, 0, stderr);
        assert.ok(performance.now() - began < 20_000 * SLOWNESS, `${command.join(" ")} answers`);
      }
      const { body } = await http(`http://127.0.0.1:${agent.readOnlyPort}/metrics`);
      assert.match(body, /kubelet_running_pods/);
      const [container] = await site.containers((await site.find("far"))?.uid);
      await site.cri.stopContainer(container?.id ?? "", 0, { signal: new AbortController().signal });
      await site.event("FailedMount", "far", /what is mounted at .* does not answer/);
      write("near", "echo end");
      await said(site, "near", /end/);
      await remove("near");
      await remove("far");
    } finally {
      thaw(daemon);
    }
    await until("the daemon is gone", () => spawnSync("kill", ["-0", String(daemon)]).status !== 0);
    await until("nothing is mounted", () => mounts().length === 0);
  });

  it("kill -9 at any time: no data is lost, nothing is mounted twice, nothing is left", async () => {
    const random = randomFrom(7);
    for (let round = 0; round < 5; round++) {
      write("life", `echo ${round} >> /data/rounds; sync; cat /data/rounds; echo round-${round}-end`);
      await pause(random() * 1500 * SLOWNESS);
      await agent.end("SIGKILL");
      agent = await up();
      await said(site, "life", new RegExp(`round-${round}-end`));
      site.remove("life");
      await pause(random() * 1000 * SLOWNESS);
      await agent.end("SIGKILL");
      agent = await up();
      await site.gone("life");
      const targets = mounts();
      assert.equal(new Set(targets).size, targets.length, "nothing is mounted twice");
    }
    await until("nothing is left", () => flex.attached().length === 0 && mounts().length === 0);
    write("life", "sort -u /data/rounds | tr '\\n' ' '; echo end");
    assert.match(await said(site, "life", /end/), /0 1 2 3 4 end/);
    await remove("life");
    await until("nothing is left", () => flex.attached().length === 0 && mounts().length === 0);
  });
});
