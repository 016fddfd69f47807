/**
 * Each fault of a CSI driver, of the agent and of the machine by itself: the agent killed before and after each call, every
 * code at each call, a reboot that leaves directories without mounts, a driver that hangs, no API server at teardown.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import type { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster } from "../support/cluster-site.ts";
import { makeClaim, shell, volumesOf } from "../support/csi-claims.ts";
import { LoopCsiProcess, whyNoLoopCsi } from "../support/loop-csi/process.ts";

skipWithoutCluster();
const reason = whyNoLoopCsi();
if (reason !== undefined) {
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

const DRIVER = "loop.example.com";
const MIB = 2 ** 20;
const CODES = Array.from({ length: 16 }, (_, at) => at + 1);

describe("single faults of CSI volumes", () => {
  let site: ClusterSite;
  let agent: Program;
  let driver: LoopCsiProcess;
  before(async () => {
    site = await ClusterSite.start({ controllers: true });
    mkdirSync(join(site.dir, "loop"));
    driver = new LoopCsiProcess(DRIVER, { dir: join(site.dir, "loop"), root: site.root });
    const spec = { attachRequired: false };
    site.apply({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec });
    agent = await start();
    await site.nodeReady();
    await driver.start();
  });
  after(async () => {
    await driver?.kill();
    if (site !== undefined) LoopCsiProcess.releaseLoops(site.dir);
    await site?.close();
  });
  afterEach(() => driver.behave({}));
  const start = (): Promise<Program> => site.join([site.config({ syncFrequency: "3s" })]);
  const restart = async (): Promise<void> => {
    await agent.end("SIGKILL");
    agent = await start();
  };

  const make = (name: string): void => {
    driver.create(`vol-${name}`, 16 * MIB);
    makeClaim(site, { name, driver: DRIVER, source: { fsType: "ext4" } });
  };
  const run = (name: string, script: string): void =>
    site.apply(site.bound(name, { ...volumesOf(name), containers: [shell(script)] }));
  const remove = (...names: readonly string[]): void =>
    void site.kubectl("delete", "pod", ...names, "--wait=false", "--grace-period=1");
  const mounts = (): readonly string[] =>
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
      .filter((path) => path.startsWith(site.root) && path.includes("/kubernetes.io"))
      .filter((path) => path.includes("csi"));
  const stages = (): readonly string[] => {
    const folder = join(site.root, "plugins/kubernetes.io/csi", DRIVER);
    return existsSync(folder) ? readdirSync(folder) : [];
  };
  const loops = (): readonly string[] =>
    execFileSync("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"], { encoding: "utf8" })
      .split("\n")
      .filter((file) => file.startsWith(site.dir));
  const nothingLeft = async (): Promise<void> => {
    const left = (): readonly string[] => [...mounts(), ...stages(), ...loops()];
    await until("nothing is left", () => left().length === 0, {
      limitMs: 60_000,
      seen: () => [left(), driver.calls().slice(-8), agent.stderr.slice(-2000)],
    });
  };
  const noted = (method: string, volume: string): Promise<unknown> =>
    until(method, () => driver.asked(method, `vol-${volume}`).length > 0, {
      limitMs: 60_000,
      seen: () => [driver.calls().slice(-8), agent.stderr.slice(-2000)],
    });

  for (const [method, isTeardown] of [
    ["NodeStageVolume", false],
    ["NodePublishVolume", false],
    ["NodeUnpublishVolume", true],
    ["NodeUnstageVolume", true],
  ] as const) {
    for (const when of ["began", "worked"] as const) {
      test(`the agent is killed when ${method} ${when}`, async () => {
        const name = `${method.slice(4, -6).toLowerCase()}-${when}`;
        make(name);
        const behaviour = when === "began" ? { hanging: [method] } : { hangingAfterWork: [method] };
        if (!isTeardown) driver.behave(behaviour);
        run(name, "echo kept > /v/file; sync /v/file; echo written");
        const written = async (): Promise<void> => {
          const pod = await site.podReady(name);
          await until("its words", () => site.log(pod).includes("written"), { limitMs: 60_000 });
        };
        if (isTeardown) {
          await written();
          driver.behave(behaviour);
          remove(name);
        }
        await noted(`${method} ${when}`, name);
        await restart();
        driver.behave({});
        if (!isTeardown) {
          await written();
          remove(name);
        }
        await site.podGone(name);
        await nothingLeft();
        const found = execFileSync("debugfs", ["-R", "cat /file", join(driver.options.storage, `vol-${name}.img`)], {
          encoding: "utf8",
          stdio: ["ignore", "pipe", "ignore"],
        });
        assert.equal(found, "kept\n");
      });
    }
  }

  test("every code, once for each call, before and after its work: the pods start, go, and leave nothing", async () => {
    const cases = [false, true].flatMap((afterWork) =>
      CODES.map((code) => ({ code, afterWork, name: `code-${code}-${afterWork ? "after" : "before"}` })),
    );
    for (const { name } of cases) make(name);
    driver.behave({ firstCalls: Object.fromEntries(cases.map(({ name, ...fault }) => [`vol-${name}`, fault])) });
    for (const { name } of cases) run(name, "touch /v/file");
    for (const { name } of cases) await site.podReady(name);
    remove(...cases.map(({ name }) => name));
    for (const { name } of cases) await site.podGone(name);
    await nothingLeft();
    driver.behave({});
    for (const { name, code } of cases) {
      for (const method of ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]) {
        const codes = driver.asked(method, `vol-${name}`).map((call) => call.code);
        assert.equal(codes[0], code, `${method} of ${name}: ${codes.join(" ")}`);
        assert.ok(codes.includes(0), `${method} of ${name}: ${codes.join(" ")}`);
      }
    }
  });

  test("a driver that hangs keeps no other pod waiting, and its own pod says so and goes once it answers", async () => {
    make("hung");
    make("beside");
    const words = (name: string): string =>
      site.kubectl("get", "events", `--field-selector=involvedObject.name=${name},reason=FailedMount`);
    run("beside", "true");
    await site.podReady("beside");
    driver.behave({ hanging: ["NodeStageVolume"] });
    run("hung", "true");
    site.apply(site.bound("plain"));
    await site.podReady("plain");
    await until("the event", () => words("hung").includes('volume "v" has not ended after 30 s'), { limitMs: 60_000 });
    remove("beside");
    await site.podGone("beside");
    remove("hung", "plain");
    await site.podGone("plain");
    driver.behave({});
    await site.podGone("hung");
    await nothingLeft();
  });

  test("a reboot leaves directories without mounts: the pod has its volume and its data again", async () => {
    make("reboot");
    make("deleted");
    for (const name of ["reboot", "deleted"]) {
      run(name, "[ -e /v/file ] && echo again; echo kept > /v/file; sync /v/file; echo written");
      const pod = await site.podReady(name);
      await until("its words", () => site.log(pod).includes("written"));
    }
    await Promise.all([agent.end("SIGKILL"), driver.kill()]);
    for (const id of await site.tasks()) {
      await site.containerd.ctr("tasks", "kill", "--all", "--signal", "SIGKILL", id).catch(() => undefined);
    }
    await until("no process has the volume", () => {
      for (const path of [...mounts()].reverse()) execFileSync("umount", [path]);
      LoopCsiProcess.releaseLoops(site.dir);
      return mounts().length === 0 && loops().length === 0;
    });
    assert.ok(stages().length > 0, "the directories are there");
    site.kubectl("delete", "pod", "deleted", "--force", "--grace-period=0");
    agent = await start();
    await driver.start();
    const again = await site.podIs("reboot", "runs again", ({ status }) =>
      status?.containerStatuses?.some(({ restartCount, ready }) => restartCount > 0 && ready),
    );
    await until("its data", () => site.log(again).includes("again"), { seen: () => site.log(again) });
    remove("reboot");
    await site.podGone("reboot");
    await nothingLeft();
  });

  test("volumes are torn down with no API server", async () => {
    make("alone");
    // It ends when there is no API server any more, which the file tells it.
    const stop = "echo stopping; until [ -e /v/end ]; do sleep 0.1; done; exit 0";
    const slow = shell(`trap '${stop}' TERM; echo listens; while :; do sleep 3600 & wait $!; done`);
    site.apply(site.bound("alone", { ...volumesOf("alone"), terminationGracePeriodSeconds: 120, containers: [slow] }));
    const pod = await site.podReady("alone");
    await until("it listens", () => site.log(pod).includes("listens"));
    site.kubectl("delete", "pod", "alone", "--wait=false");
    await until("it is stopping", () => site.log(pod).includes("stopping"));
    await site.plane.killApiServer();
    const [volume] = mounts().filter((path) => path.endsWith("/pv-alone/mount"));
    assert.ok(volume !== undefined, "it was not torn down before");
    writeFileSync(join(volume, "end"), "");
    await nothingLeft();
    await site.plane.startApiServer();
    await site.podGone("alone");
  });
});
