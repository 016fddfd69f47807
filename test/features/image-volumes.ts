/** On containerd 2: images as volumes, pinned and preloaded images, runtime handlers of images, and the maximum age. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { connectRuntime } from "../../src/adapters/connect-runtime.ts";
import { findInPath } from "../../src/adapters/embedded/daemon.ts";
import { ImagePuller } from "../../src/images/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { fixed } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { ImageReport, ReportedImage } from "../../src/model/image-report.ts";
import { http } from "../integration/support/http.ts";
import { importImage, testerFiles } from "../integration/support/images.ts";
import { FOREVER, forever, manifest, shell } from "../integration/support/manifests.ts";
import { PlainAgent } from "../integration/support/plain-agent.ts";
import { NODE, requireMachine, Site } from "../integration/support/site.ts";
import { said } from "../integration/support/told.ts";
import { until } from "../integration/support/until.ts";
import { TestContainerd } from "../support/containerd.ts";
import { freePort } from "../support/free-port.ts";
import { pod } from "../support/pods.ts";
import { REGISTRY_USER, TestRegistry, whyNoRegistry } from "../support/registry.ts";
import { fillingLayer, shellLayer } from "../support/registry-image.ts";

requireMachine();
const bin = process.env["CONTAINERD2_BIN_DIR"] ?? "";
const missing = bin === "" ? "CONTAINERD2_BIN_DIR names none" : whyNoRegistry();
if (missing !== undefined) {
  process.stdout.write(`${missing}\n`);
  process.exit(77);
}

const { signal } = new AbortController();
const PATH = [bin, process.env["RUNC_BIN_DIR"], process.env["PATH"]].filter((part) => part).join(":");
const busybox = findInPath("busybox", process.env["PATH"]) ?? "";
const dir = mkdtempSync(join(tmpdir(), "v-"));
let registry: TestRegistry;
before(async () => {
  registry = await TestRegistry.start(join(dir, "registry"));
});
after(async () => {
  await registry?.stop();
  rmSync(dir, { recursive: true, force: true });
});

describe("images on containerd 2", () => {
  const site = new Site();
  const agent = new PlainAgent(site);
  let readOnlyPort: number;
  const local = (short: string): string => `localhost/kubelet-ts-test/${short}:1`;
  const ctr = (...words: string[]): string =>
    execFileSync(join(bin, "ctr"), ["-a", site.layout.socket, "-n", "k8s.io", ...words], { encoding: "utf8" });
  const gone = async (name: string): Promise<void> => {
    site.remove(name);
    await site.gone(name);
  };
  const images = (): Promise<ImageReport> => site.ask<ImageReport>("/v1/images");
  const find = async (part: string): Promise<ReportedImage | undefined> =>
    (await images()).images.find(({ names }) => names.some((name) => name.includes(part)));
  const keptFor = async (part: string): Promise<string> => {
    const { keep, by = "" } = (await find(part)) ?? {};
    return `${keep} ${by}`.trim();
  };
  /** Imports an image of its own content: by its id it is no other one. */
  const preload = (short: string): Promise<void> => {
    const own = { kind: "file", path: short, mode: 0o644, data: Buffer.from(short) } as const;
    return importImage(site, { name: local(short), files: [...testerFiles(), own] }, join(bin, "ctr"));
  };
  const startAgent = async (): Promise<void> => {
    await agent.start([`--hostname-override=${NODE}`]);
  };

  before(async () => {
    await (await site.up([], { env: { ...process.env, PATH } })).end("SIGINT");
    mkdirSync(join(site.state, "kubelet"), { recursive: true });
    const auth = Buffer.from(`${REGISTRY_USER.username}:${REGISTRY_USER.password}`).toString("base64");
    writeFileSync(join(site.state, "kubelet/config.json"), JSON.stringify({ auths: { [registry.host]: { auth } } }));
    const endpoint = { containerRuntimeEndpoint: `unix://${site.layout.socket}`, staticPodPath: site.pods };
    readOnlyPort = await freePort();
    agent.set({ healthzPort: 0, readOnlyPort, imageGCHighThresholdPercent: 100, ...endpoint });
    agent.set({ featureGates: { ImageVolumeWithDigest: true } });
    // 0 stands for the default.
    agent.set({ imageMinimumGCAge: "1ms" });
    await startAgent();
    assert.match((await site.cri.version({ signal })).version, /^v?2\./);
  });
  after(async () => {
    await agent.close();
    await site.close();
  });

  it("an image volume is pulled, mounted read-only, whole or in part, and in use as long as the pod", async () => {
    await registry.add("team/data", [shellLayer(busybox), fillingLayer("data", 4096)]);
    const reference = `${registry.host}/team/data:1`;
    const volumeMounts = [
      { name: "data", mountPath: "/data" },
      { name: "data", mountPath: "/part", subPath: "bin" },
    ];
    const script = "{ ls /data/filling-data /part/busybox; touch /data/x; echo done; } 2>&1";
    const main = shell("main", forever(script), { volumeMounts });
    const volumes = [{ name: "data", image: { reference, pullPolicy: "IfNotPresent" } }];
    site.write(manifest("volume", { containers: [main], volumes }));
    const want = "/data/filling-data\n/part/busybox\ntouch: /data/x: Read-only file system\ndone\n";
    assert.equal(await said(site, "volume", /done/), want);
    // The container may write before the agent has observed it.
    await site.running("volume");
    assert.equal(await keptFor("team/data"), "inUse default/volume-here");
    const pulled = (await site.events()).filter(
      ({ reason, message }) => reason === "Pulled" && /team\/data/.test(message),
    );
    assert.match(pulled[0]?.message ?? "", /^Successfully pulled image/);
    const listed = JSON.parse((await http(`http://127.0.0.1:${readOnlyPort}/pods`)).body) as { items: Pod[] };
    const status = listed.items.find(({ metadata }) => metadata.name === "volume-here")?.status;
    const imageRef = (await find("team/data"))?.id;
    assert.match(imageRef ?? "", /^sha256:/);
    assert.deepEqual(
      status?.containerStatuses?.[0]?.volumeMounts?.map(({ volumeStatus }) => volumeStatus?.image),
      [{ imageRef }, { imageRef }],
    );
    // A new agent knows it from the runtime alone.
    await agent.kill();
    await startAgent();
    await site.running("volume");
    assert.equal(await keptFor("team/data"), "inUse default/volume-here");
    await gone("volume");
    await until("it may go", async () => (await keptFor("team/data")) === "spare");
  });

  it("an image volume that cannot be had is a reason of its container, and starts once it can", async () => {
    const volumes = [
      { name: "absent", image: { reference: `${registry.host}/team/absent:1`, pullPolicy: "Never" } },
      { name: "late", image: { reference: `${registry.host}/team/late:1`, pullPolicy: "IfNotPresent" } },
    ];
    const main = (name: string) => shell("main", FOREVER, { volumeMounts: [{ name, mountPath: "/data" }] });
    site.write(manifest("absent", { containers: [main("absent")], volumes: volumes.slice(0, 1) }));
    site.write(manifest("late", { containers: [main("late")], volumes: volumes.slice(1) }));
    const never = await site.pod("absent", "waits", ({ containers: [one] }) => one?.reason === "ErrImageNeverPull");
    assert.match(never.containers[0]?.message ?? "", /team\/absent:1" is not present with pull policy of Never/);
    const late = await site.pod("late", "waits", ({ containers: [one] }) => /ImagePull/.test(one?.reason ?? ""));
    assert.match(late.containers[0]?.message ?? "", /not found/);
    await registry.add("team/late", [shellLayer(busybox)]);
    await site.running("late");
    await gone("absent");
    await gone("late");
  });

  it("pinned images and that of sandboxes stay when all others go", async () => {
    for (const short of ["pinned", "unused"]) await preload(short);
    // The runtime hears of a new label as of a new image.
    ctr("images", "label", local("pinned"), "io.cri-containerd.pinned=pinned");
    await until("the runtime has pinned it", async () => (await keptFor("/pinned:")) === "pinned");
    assert.ok(["pinned", "sandbox"].includes((await find("/pause:"))?.keep ?? ""));
    await until("the other one may go", async () => (await keptFor("/unused:")) === "spare");
    agent.set({ imageGCLowThresholdPercent: 0 });
    await agent.change("imageGCHighThresholdPercent", 1);
    const unused = async (): Promise<unknown[]> => [await find("/unused:"), await find("team/late")];
    await until("what is unused is removed", async () => (await unused()).every((image) => image === undefined));
    assert.equal(await keptFor("/pinned:"), "pinned");
    assert.ok(await find("/pause:"));
    const { message } = await site.event("FreeDiskSpaceFailed", NODE);
    assert.match(message, /Failed to free sufficient space by deleting unused images/);
    agent.set({ imageGCLowThresholdPercent: 80 });
    await agent.change("imageGCHighThresholdPercent", 100);
  });

  it("an image that is not used for the maximum age is removed, however empty the disk is", async () => {
    await preload("old");
    await until("it may go", async () => (await keptFor("/old:")) === "spare");
    await agent.change("imageMaximumGCAge", "1s");
    await until("it is removed", async () => {
      // Each change of a limit is a pass; the next one by itself comes after minutes.
      agent.set({ imageGCLowThresholdPercent: 70 + Math.floor(Math.random() * 9) });
      return (await find("/old:")) === undefined;
    });
    assert.equal(await keptFor("/pinned:"), "pinned");
    await agent.change("imageMaximumGCAge", "0s");
  });

  it("preloaded images need no credentials by default, and do with AlwaysVerify", async () => {
    const main = shell("main", FOREVER, { image: local("pinned"), imagePullPolicy: "IfNotPresent" });
    site.write(manifest("preloaded", { containers: [main] }));
    await site.running("preloaded");
    await gone("preloaded");
    await agent.kill();
    agent.set({ imagePullCredentialsVerificationPolicy: "AlwaysVerify" });
    await startAgent();
    site.write(manifest("verified", { containers: [main] }));
    const waiting = await site.pod("verified", "waits", ({ containers: [one] }) => /ImagePull/.test(one?.reason ?? ""));
    assert.match(waiting.containers[0]?.message ?? "", /kubelet-ts-test\/pinned/);
    await gone("verified");
  });
});

describe("runtime handlers of images", () => {
  let containerd: TestContainerd;
  before(async () => {
    containerd = await TestContainerd.start({ binDir: bin, handlers: ["other"] });
  });
  after(() => containerd?.stop());

  it("an image is pulled and found for the handler of the pod", async () => {
    await registry.add("team/handled", [shellLayer(busybox)]);
    const clock = new SystemClock();
    const { endpoint } = containerd;
    const connection = connectRuntime({ clock, log: silent }, { endpoint, requestTimeoutMs: fixed(30_000) });
    const agent = manyListeners();
    const nodeCredentials = { forImage: async () => [{ auth: REGISTRY_USER, hash: "" }] };
    const deps = { images: connection.images, clock, nodeCredentials, namesHandler: true };
    const puller = new ImagePuller(deps, fixed({ parallel: 1, qps: 0, burst: 0 }), agent.signal);
    const events: string[] = [];
    const step = { detail: () => undefined, done: () => undefined, fail: () => undefined, abort: () => undefined };
    const event = (_type: string, reason: string, what: string | { message: string }): void =>
      void events.push(`${reason} ${typeof what === "string" ? what : what.message}`);
    const image = `${registry.host}/team/handled:1`;
    const of = pod("web").container("app", { image, imagePullPolicy: "IfNotPresent" }).build();
    const request = {
      pod: of,
      container: of.spec.containers[0] ?? { name: "" },
      journal: { begin: () => step, event },
      slot: { release: () => undefined },
      runtimeHandler: async () => "other",
    };
    try {
      const first = await puller.ensure(request, agent);
      const second = await puller.ensure(request, agent);
      assert.equal(second.ref, first.ref);
      assert.match(
        events.join("\n"),
        /^Pulling .*\nPulled Successfully pulled .*\nPulled .* already present on machine$/,
      );
      const found = await connection.images.imageStatus(image, { signal, runtimeHandler: "other" });
      assert.equal(found?.id, first.ref);
    } finally {
      agent.abort();
      connection.close();
    }
  });
});
