import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { RuntimeError } from "../../src/adapters/runtime/port.ts";
import { containerContract } from "./container-suite.ts";
import { eventContract } from "./event-suite.ts";
import { type Harness, never, type RuntimeHarness, sandboxConfig, withCode } from "./harness.ts";

/** The suite that every runtime port and image port must pass. */
export function runtimeContract(name: string, makeHarness: () => Promise<RuntimeHarness>): void {
  describe(`runtime contract: ${name}`, { concurrency: false }, () => {
    let harness: RuntimeHarness | undefined;
    const current: Harness = () => {
      assert.ok(harness, "the harness did not start");
      return harness;
    };
    before(async () => {
      harness = await makeHarness();
    });
    after(() => harness?.stop());
    describe("runtime", () => runtimeTests(current));
    describe("sandboxes", () => sandboxTests(current));
    describe("containers", () => containerContract(current));
    describe("images", () => imageTests(current));
    describe("events", () => eventContract(current));
  });
}

function runtimeTests(harness: Harness): void {
  test("tells its name and version", async () => {
    const version = await harness().runtime.version(never);
    assert.match(version.name, /\w/);
    assert.match(version.version, /\d+\.\d+/);
    assert.equal(version.apiVersion, "v1");
  });

  test("is ready, network included", async () => {
    const { ready, networkReady, message } = await harness().runtime.status(never);
    assert.deepEqual({ ready, networkReady, message }, { ready: true, networkReady: true, message: "" });
  });

  test("tells the cgroup driver, or that it cannot", async () => {
    const driver = await harness().runtime.cgroupDriver(never);
    assert.ok(driver === undefined || driver === "cgroupfs" || driver === "systemd");
    assert.equal(await harness().runtime.cgroupDriver(never), driver, "the same answer when asked again");
  });

  test("an aborted signal stops a call before it begins", async () => {
    const reason = new Error("changed my mind");
    const aborted = { signal: AbortSignal.abort(reason) };
    await assert.rejects(harness().runtime.version(aborted), (error) => error === reason);
  });
}

function sandboxTests(harness: Harness): void {
  test("lives: run, status, stop, remove", async () => {
    const { runtime } = harness();
    const config = sandboxConfig(harness());
    const id = await runtime.runSandbox(config, "", never);
    const status = await runtime.sandboxStatus(id, never);
    assert.equal(status.state, "ready");
    assert.deepEqual(status.metadata, config.metadata);
    assert.deepEqual({ ...status.labels }, config.labels);
    assert.deepEqual({ ...status.annotations }, config.annotations);
    assert.equal(status.hostNetwork, false);
    assert.match(status.ips[0] ?? "", /^\d+\.\d+\.\d+\.\d+$/);
    assert.ok(Math.abs(status.createdAt - harness().clock.now().wall) < 60_000, "createdAt is in milliseconds");
    await runtime.stopSandbox(id, never);
    assert.equal((await runtime.sandboxStatus(id, never)).state, "notReady");
    await runtime.removeSandbox(id, never);
    await assert.rejects(runtime.sandboxStatus(id, never), withCode("NotFound"));
  });

  test("on the host's network has no address of its own", async () => {
    const { runtime } = harness();
    const plain = sandboxConfig(harness());
    const namespaces = { network: "node", pid: "container", ipc: "pod" } as const;
    const linux = { ...plain.linux, security: { ...plain.linux.security, namespaces } };
    const id = await runtime.runSandbox({ ...plain, hostname: "", linux }, "", never);
    const { hostNetwork, ips } = await runtime.sandboxStatus(id, never);
    assert.deepEqual({ hostNetwork, ips }, { hostNetwork: true, ips: [] });
    await runtime.removeSandbox(id, never);
  });

  test("stop and remove may be repeated, also for ids that never were", async () => {
    const { runtime } = harness();
    const id = await runtime.runSandbox(sandboxConfig(harness()), "", never);
    for (const target of [id, "0123456789abcdef".repeat(4)]) {
      for (let round = 0; round < 2; round++) await runtime.stopSandbox(target, never);
      for (let round = 0; round < 2; round++) await runtime.removeSandbox(target, never);
    }
  });

  test("one name and attempt exists once, and again after removal", async () => {
    const { runtime } = harness();
    const config = sandboxConfig(harness());
    const id = await runtime.runSandbox(config, "", never);
    await assert.rejects(runtime.runSandbox(config, "", never), withCode("AlreadyExists"));
    const second = await runtime.runSandbox({ ...config, metadata: { ...config.metadata, attempt: 1 } }, "", never);
    await runtime.removeSandbox(id, never);
    await runtime.removeSandbox(second, never);
    await runtime.removeSandbox(await runtime.runSandbox(config, "", never), never);
  });

  test("lists by id and by labels", async () => {
    const { runtime } = harness();
    const configs = [sandboxConfig(harness()), sandboxConfig(harness())];
    const ids: string[] = [];
    for (const config of configs) ids.push(await runtime.runSandbox(config, "", never));
    const list = async (filter: Parameters<typeof runtime.listSandboxes>[0]): Promise<string[]> =>
      (await runtime.listSandboxes(filter, never)).map(({ id }) => id).sort();
    assert.deepEqual(await list({ id: ids[0] ?? "" }), [ids[0]]);
    assert.deepEqual(await list({ labels: { pod: configs[1]?.metadata.name ?? "" } }), [ids[1]]);
    assert.deepEqual(await list({ labels: { suite: "contract" } }), [...ids].sort());
    assert.deepEqual(await list({ labels: { suite: "contract", pod: "another" } }), []);
    for (const id of ids) await runtime.removeSandbox(id, never);
  });
}

function imageTests(harness: Harness): void {
  const missing = "localhost:1/kubelet-ts-test/missing:1";

  test("an image that is there has an id, its tag and a size", async () => {
    const { images, image } = harness();
    const status = await images.imageStatus(image, never);
    assert.ok(status);
    assert.match(status.id, /^sha256:/);
    assert.ok(status.tags.includes(image));
    assert.ok(status.sizeBytes > 0);
    assert.ok((await images.listImages(never)).some(({ id }) => id === status.id));
    assert.deepEqual((await images.imageStatus(status.id, never))?.id, status.id, "found by its id too");
  });

  test("an image that is not there is undefined, and its removal succeeds", async () => {
    assert.equal(await harness().images.imageStatus(missing, never), undefined);
    await harness().images.removeImage(missing, never);
  });

  test("pulling an image that exists nowhere fails with words that name it", async () => {
    await assert.rejects(harness().images.pullImage(missing, {}, never), (error) => {
      assert.ok(error instanceof RuntimeError);
      assert.match(error.message, /kubelet-ts-test\/missing/);
      return true;
    });
  });

  test("tells what its file system holds", async () => {
    const {
      images: [usage],
    } = await harness().images.imageFilesystems(never);
    assert.match(usage?.mountpoint ?? "", /^\//);
  });
}
