/** Volumes of an NFS server on a running agent: the kernel's own server on the loopback, and its bad days. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { VolumeMount } from "../../src/model/generated/types.ts";
import { http } from "../integration/support/http.ts";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { said } from "../integration/support/told.ts";
import { SLOWNESS, until } from "../integration/support/until.ts";
import { NfsServer, whyNoNfs } from "../support/nfs-server.ts";

requireMachine();
const reason = whyNoNfs();
const { signal } = new AbortController();

describe("volumes of an NFS server", { skip: reason ?? false }, () => {
  const site = new Site();
  const server = new NfsServer(site.dir);
  let agent: Agent;
  /** A pod that runs a script with the export, or another directory of the server, at /data. */
  const write = (
    pod: string,
    script: string,
    more: Partial<VolumeMount> & { isReadOnly?: boolean; path?: string } = {},
  ): void => {
    const { isReadOnly = false, path = server.path, ...mount } = more;
    const volumeMounts = [{ name: "net", mountPath: "/data", ...mount }];
    const volumes = [{ name: "net", nfs: { server: "127.0.0.1", path, readOnly: isReadOnly } }];
    site.write(manifest(pod, { containers: [shell("main", forever(script), { volumeMounts })], volumes }));
  };
  const remove = async (pod: string, limitMs = 60_000): Promise<void> => {
    site.remove(pod);
    let last: unknown;
    const isGone = async (): Promise<boolean> => {
      last = await site.find(pod);
      return last === undefined;
    };
    await until(`${pod} is gone`, isGone, { limitMs, seen: () => last });
  };
  const mounts = (): readonly string[] =>
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => / - nfs4? /.test(line))
      .map((line) => line.split(" ")[4] ?? "");
  const answers = async (...command: string[]): Promise<string> => {
    const began = performance.now();
    const { code, stdout, stderr } = await site.run(...command);
    assert.equal(code, 0, stderr);
    assert.ok(performance.now() - began < 10_000 * SLOWNESS, `${command.join(" ")} answers`);
    return stdout;
  };

  before(async () => {
    await server.start();
    agent = await site.up();
  });
  after(async () => {
    server.plug();
    await site.close();
    server.close();
  });

  it("are mounted, shared and read-only where asked, in part too, over kill -9, and unmounted with their pods", async () => {
    write("one", "id -u > /data/one; mkdir /data/sub; echo inside > /data/sub/file; echo written");
    await said(site, "one", /written/);
    assert.equal(readFileSync(join(server.path, "one"), "utf8"), "0\n");
    write("two", "cat /data/one; touch /data/x || echo refused; echo end", { isReadOnly: true });
    assert.match(await said(site, "two", /end/), /^0\n(.*\n)*refused/m);
    write("three", "cat /data/file; echo end", { subPath: "sub" });
    assert.match(await said(site, "three", /end/), /^inside/m);
    const before = mounts().length;
    await agent.end("SIGKILL");
    agent = await site.up();
    await site.running("one");
    assert.equal(mounts().length, before, "nothing is mounted twice");
    const page = await http(`http://127.0.0.1:${agent.readOnlyPort}/metrics`);
    assert.match(
      page.body,
      /volume_manager_total_volumes\{plugin_name="kubernetes\.io\/nfs",state="desired_state_of_world"\} 3/,
    );
    for (const pod of ["one", "two", "three"]) await remove(pod);
    assert.deepEqual(mounts(), []);
    assert.ok(existsSync(join(server.path, "sub/file")), "the data stays");
  });

  it("wait for a server that refuses, and say so within seconds; they are mounted when it is back", async () => {
    server.stop();
    const began = performance.now();
    write("early", "echo end");
    const { message } = await site.event("FailedMount", "early", /mount\.nfs/);
    assert.ok(performance.now() - began < 15_000 * SLOWNESS, "mount.nfs does not try for two minutes");
    assert.match(
      message,
      /^MountVolume\.SetUp failed for volume "net" : mount failed: exit status 32\nMounting command: mount\n/,
    );
    assert.match(await answers("explain", "early"), /mount failed/);
    await server.start();
    await said(site, "early", /end/);
    await remove("early");
  });

  it("whose handles went stale are mounted anew for the next container", async () => {
    // The handle of an export itself is never stale: the server finds it by its path.
    const path = join(server.path, "deep");
    mkdirSync(path);
    write("stale", "cat /data/round || true; echo end", { path });
    await said(site, "stale", /end/);
    rmSync(path, { recursive: true });
    mkdirSync(path);
    writeFileSync(join(path, "round"), "two\n");
    const target = mounts()[0] ?? "";
    await until("the handle is stale", () => isStale(target));
    const [container] = await site.containers((await site.find("stale"))?.uid);
    await site.cri.stopContainer(container?.id ?? "", 0, { signal });
    await said(site, "stale", /^two/m);
    await remove("stale");
    assert.deepEqual(mounts(), []);
  });

  it("of a server that is gone: the agent answers, pods say so, and both a running and a new one are deleted", async () => {
    write("lost", "while :; do dd if=/dev/zero of=/data/big bs=64k count=64 2> /dev/null; done & echo end");
    await said(site, "lost", /end/);
    server.unplug();
    write("new", "echo end");
    await site.event("FailedMount", "new", /has not ended after 30 s: a server, a disk or a driver may not answer/);
    assert.match(await answers("explain", "new"), /being set up for \d+ s/);
    await answers("explain", "lost");
    await answers("ps");
    const began = performance.now();
    await remove("new");
    assert.ok(performance.now() - began < 30_000 * SLOWNESS, "a mount that hangs keeps no pod");
    await agent.end("SIGKILL");
    agent = await site.up();
    await site.running("lost");
    // A minute for the server to come back, as in Kubernetes, and then by force.
    await remove("lost", 180_000);
    assert.deepEqual(mounts(), []);
    server.plug();
    write("after", "echo end");
    await said(site, "after", /end/);
    await remove("after");
  });
});

function isStale(path: string): boolean {
  try {
    execFileSync("stat", ["--cached=never", "--", path], { stdio: "pipe", timeout: 10_000 });
    return false;
  } catch (error) {
    return /Stale/.test(String((error as { stderr?: unknown }).stderr));
  }
}
