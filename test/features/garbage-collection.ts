/** Garbage collection of real images, containers and logs, on a small filesystem that holds the runtime and the agent. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statfsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { recordName } from "../../src/gc/images/local-images.ts";
import type { ImageReport, ReportedImage } from "../../src/model/image-report.ts";
import { http } from "../integration/support/http.ts";
import { importImage, testerFiles } from "../integration/support/images.ts";
import { FOREVER, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { LoopFilesystem, whyNoLoop } from "../support/loop-filesystem.ts";
import { REGISTRY_USER, TestRegistry, whyNoRegistry } from "../support/registry.ts";

requireMachine();
const reason = whyNoLoop() ?? whyNoRegistry();
if (reason !== undefined) {
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

const MIB = 1024 * 1024;
const disk = new LoopFilesystem(256);
// Short paths below the mount: the site's directory is made in there.
process.env["TMPDIR"] = disk.path;
const site = new Site();
process.env["TMPDIR"] = "";
const OPERATIONS = join(import.meta.dirname, "../../docs/operations.md");

const name = (short: string): string => `localhost/kubelet-ts-test/${short}:1`;
const command = (image: string, more = {}): ReturnType<typeof shell> => shell("main", FOREVER, { image, ...more });

/** Imports an image with a few commands and so many megabytes of noise. */
async function bring(short: string, megabytes: number): Promise<void> {
  const noise = { kind: "file", path: "noise", mode: 0o644, data: randomBytes(megabytes * MIB) } as const;
  await importImage(site, { name: name(short), files: [...testerFiles(), noise] });
}

async function images(): Promise<ImageReport> {
  const { code, stdout, stderr } = await site.run("images", "-o", "json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as ImageReport;
}

const find = (report: ImageReport, part: string): ReportedImage | undefined =>
  report.images.find(({ names }) => names.some((one) => one.includes(part)));

describe("garbage collection", () => {
  let agent: Agent;
  let registry: TestRegistry;
  let pulled: string;
  /** Percent of the filesystem that is used before anything is removed. */
  let used: number;

  before(async () => {
    registry = await TestRegistry.start(join(disk.path, "registry"));
    // What an agent that was killed, or another kubelet, left behind.
    const [logs, links] = [join(site.state, "log/pods"), join(site.state, "log/containers")];
    mkdirSync(join(logs, "default_gone_0000/app"), { recursive: true });
    mkdirSync(join(logs, "not-a-pod"));
    writeFileSync(join(logs, "default_gone_0000/app/0.log"), "");
    mkdirSync(links, { recursive: true });
    symlinkSync(join(logs, "default_gone_0000/app/0.log"), join(links, "gone_default_app-0000.log"));
    symlinkSync(join(logs, "default_earlier_0001/app/0.log"), join(links, "earlier_default_app-0001.log"));
    mkdirSync(join(site.state, "kubelet"), { recursive: true });
    const auth = Buffer.from(`${REGISTRY_USER.username}:${REGISTRY_USER.password}`).toString("base64");
    writeFileSync(join(site.state, "kubelet/config.json"), JSON.stringify({ auths: { [registry.host]: { auth } } }));
    agent = await site.up([
      ...["--image-gc-high-threshold=100", "--minimum-image-ttl-duration=0s"],
      ...["--maximum-dead-containers=1", "--maximum-dead-containers-per-container=5"],
    ]);
    for (const short of ["used", "waiting", "imported"]) await bring(short, 8);
    await bring("pulled", 4);
    pulled = `${registry.host}/team/pulled:1`;
    const user = `${REGISTRY_USER.username}:${REGISTRY_USER.password}`;
    const ctr = ["-a", site.layout.socket, "-n", "k8s.io", "images"];
    execFileSync("ctr", [...ctr, "push", "--plain-http", "--user", user, pulled, name("pulled")]);
    execFileSync("ctr", [...ctr, "rm", name("pulled")]);
  });
  after(async () => {
    await registry.stop();
    await site.close();
    disk.close();
  });

  it("logs and links of pods that are gone are removed, what is no pod's stays", async () => {
    const logs = join(site.state, "log");
    site.write(manifest("crashing", { containers: [shell("main", "echo crashed; exit 3")] }));
    site.write(manifest("first", { containers: [shell("main", FOREVER)] }));
    await site.running("first");
    await until("the logs are gone", () => !existsSync(join(logs, "pods/default_gone_0000")));
    for (const link of ["gone_default_app-0000.log", "earlier_default_app-0001.log"]) {
      await until(`${link} is gone`, () => {
        const { status } = { status: execFileSync("ls", ["-A", join(logs, "containers")], { encoding: "utf8" }) };
        return !status.includes(link);
      });
    }
    assert.ok(existsSync(join(logs, "pods/not-a-pod")));
  });

  it("terminated containers beyond the limit in all are removed, and the restart count stays", async () => {
    const pod = await site.pod("crashing", "has crashed twice", ({ state, restarts }) => {
      return state === "CrashLoopBackOff" && restarts >= 1;
    });
    await until("only the newest is left", async () => {
      const left = await site.containers(pod.uid);
      return left.length === 1 && (left[0]?.attempt ?? 0) >= 1;
    });
    assert.ok(((await site.find("crashing"))?.restarts ?? 0) >= 1);
    // A container that was just started again has written nothing yet.
    await until("its log", async () => (await site.run("logs", "crashing")).stdout === "crashed\n");
    site.remove("crashing");
    await site.gone("crashing");
  });

  it("kubelet images tells why each image stays; one that was not pulled stays with `up`", async () => {
    site.write(manifest("user", { containers: [command(name("used"))] }));
    site.write(manifest("puller", { containers: [command(pulled, { imagePullPolicy: "IfNotPresent" })] }));
    const none = { name: "none", image: "127.0.0.1:1/team/none:1" };
    site.write(manifest("waiter", { initContainers: [none], containers: [command(name("waiting"))] }));
    await Promise.all([site.running("user"), site.running("puller")]);
    await site.pod("waiter", "is in back-off", ({ state }) => /ImagePull/.test(state));
    site.remove("puller");
    await site.gone("puller");
    const report = await images();
    const keeps = (part: string): string => `${find(report, part)?.keep} ${find(report, part)?.by ?? ""}`.trim();
    assert.equal(keeps("/used:"), "inUse default/user-here");
    assert.equal(keeps("/waiting:"), "wanted default/waiter-here");
    assert.equal(keeps("/imported:"), "local");
    assert.equal(keeps("/demo:"), "inUse default/first-here");
    assert.equal(keeps("team/pulled"), "spare");
    // By its record the next agent knows that it was pulled.
    const record = recordName(find(report, "team/pulled")?.id ?? "");
    assert.ok(existsSync(join(site.state, "kubelet/image_manager/pulled", record)));
    assert.ok(["sandbox", "pinned"].includes(find(report, "/pause:")?.keep ?? ""));
    assert.ok(report.imageFilesystem?.mountpoint.startsWith(disk.path), report.imageFilesystem?.mountpoint);
    const { blocks, bsize } = statfsSync(disk.path);
    assert.equal(report.imageFilesystem?.capacityBytes, blocks * bsize);
    const { stdout } = await site.run("images", "--would-remove");
    assert.match(
      stdout,
      /Unused images are not removed for space\n\nIMAGE.*\n\S+team\/pulled:1 .* when space is needed\n$/,
    );
  });

  it("the commands of docs/operations.md work", async () => {
    // The agent that will remove images: its first check comes while the commands run.
    used = (await images()).usagePercent ?? 0;
    await agent.end("SIGTERM");
    agent = await site.up([
      ...[`--image-gc-high-threshold=${used - 1}`, `--image-gc-low-threshold=${used - 2}`],
      ...["--minimum-image-ttl-duration=0s", "--keep-local-images=false"],
    ]);
    // The agent answers before it has read the manifests.
    await site.running("user");
    const page = readFileSync(OPERATIONS, "utf8");
    const commands = [...page.matchAll(/^ {4}kubelet (.*?)( {2,}.*)?$/gm)].map(([, words = ""]) => words);
    assert.ok(commands.length >= 4, commands.join("\n"));
    for (const words of commands) {
      const { code, stderr } = await site.run(...words.replace("POD", "user").split(" "));
      assert.equal(code, 0, `kubelet ${words}: ${stderr}`);
    }
  });

  it("unused images go until the low threshold is reached, never those that a pod uses or waits for", async () => {
    await until("an image is removed", async () => (await images()).collected.images > 0);
    // That report may have listed and measured before the removal, and counted after it.
    const after = await images();
    assert.ok((after.usagePercent ?? 100) <= used - 2, `${after.usagePercent}% of ${used}%`);
    assert.equal(after.collected.images, 1);
    assert.equal([find(after, "team/pulled"), find(after, "/imported:")].filter(Boolean).length, 1);
    for (const part of ["/used:", "/waiting:", "/demo:", "/pause:"]) assert.ok(find(after, part), part);
    const { body } = await http(`http://127.0.0.1:${agent.readOnlyPort}/metrics`);
    assert.match(body, /^kubelet_image_garbage_collected_total\{reason="space"\} 1$/m);
  });

  it("a pull is followed by a check, and a disk that others fill is reported", async () => {
    const { availableBytes = 0 } = (await images()).imageFilesystem ?? {};
    writeFileSync(join(disk.path, "filler"), Buffer.alloc(Math.max(0, availableBytes - 40 * MIB)));
    site.write(manifest("again", { containers: [command(pulled, { imagePullPolicy: "Always" })] }));
    await site.running("again");
    const { message } = await site.event("FreeDiskSpaceFailed", "here");
    assert.match(
      message,
      /^Insufficient free disk space on the node's image filesystem \(\d+% of \d+\.\d MiB used\)\. Failed to free sufficient space by deleting unused images \(freed \d+ bytes\)\./,
    );
    const left = await images();
    for (const part of ["/used:", "/waiting:", "team/pulled", "/demo:"]) assert.ok(find(left, part), part);
    assert.equal(find(left, "/imported:"), undefined);
  });
});
