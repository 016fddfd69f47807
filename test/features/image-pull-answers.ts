/** What a runtime answers to pulls beyond what containerd says by itself, by a proxy before a real one. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { findInPath } from "../../src/adapters/embedded/daemon.ts";
import { recordFileName } from "../../src/images/verification/record-format.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import { FOREVER, manifest, shell } from "../integration/support/manifests.ts";
import { KUBELET, Program } from "../integration/support/program.ts";
import { requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { removeLogLinks, removeMounts } from "../support/cluster-site.ts";
import { TestContainerd } from "../support/containerd.ts";
import { CriProxy } from "../support/cri-proxy.ts";
import { freePort } from "../support/free-port.ts";
import { REGISTRY_AUTHORIZATION, TestRegistry, whyNoRegistry } from "../support/registry.ts";
import { fillingLayer, shellLayer } from "../support/registry-image.ts";

requireMachine();

/** The gRPC code with which runtimes report errors of their own. */
const UNKNOWN = 2;

describe("what a runtime answers to a pull", { skip: whyNoRegistry() ?? false }, () => {
  const site = new Site();
  const root = join(site.state, "kubelet");
  let containerd: TestContainerd;
  let registry: TestRegistry;
  let proxy: CriProxy;
  let agent: Program;

  before(async () => {
    mkdirSync(root, { recursive: true });
    containerd = await TestContainerd.start();
    registry = await TestRegistry.start(join(site.dir, "registry"));
    proxy = await CriProxy.start(containerd.socket);
    const auth = REGISTRY_AUTHORIZATION.replace("Basic ", "");
    writeFileSync(join(root, "config.json"), JSON.stringify({ auths: { [registry.host]: { auth } } }), { mode: 0o600 });
    agent = await start();
  });
  afterEach(() => proxy.heal());
  after(async () => {
    await agent?.end("SIGKILL");
    await proxy?.stop();
    await registry?.stop();
    await containerd?.stop();
    await removeMounts(site.dir);
    await removeLogLinks(site.dir);
    // Not a state directory of `kubelet up`, which `kubelet down` could remove.
    rmSync(site.dir, { recursive: true, force: true });
  });

  const start = async (): Promise<Program> => {
    const program = new Program([
      ...[KUBELET, `--root-dir=${root}`, `--cert-dir=${site.state}/pki`, `--pod-logs-dir=${site.state}/log/pods`],
      ...[`--port=${await freePort()}`, `--healthz-port=${await freePort()}`, "--read-only-port=0"],
      ...[`--local-api-socket=${site.state}/kubelet.sock`, `--cgroup-root=${containerd.cgroupParent}`],
      ...[`--container-runtime-endpoint=${proxy.endpoint}`, "--hostname-override=here"],
      ...[`--pod-manifest-path=${site.pods}`, "--fail-swap-on=false", "--resolv-conf="],
    ]);
    await site.answers(program);
    return program;
  };
  const podOf = (name: string, image: string, imagePullPolicy = "IfNotPresent"): Pod =>
    manifest(name, { containers: [shell("main", FOREVER, { image, imagePullPolicy })] });
  const remove = async (name: string): Promise<void> => {
    site.remove(name);
    await site.gone(name);
  };
  /** A new image, with an id of its own, that only those with the password may pull. */
  const privateImage = async (name: string): Promise<string> => {
    const busybox = findInPath("busybox", process.env["PATH"]) ?? "";
    await registry.add(`private/${name}`, [shellLayer(busybox), fillingLayer(name, 1024)]);
    return `${registry.host}/private/${name}:1`;
  };
  const intents = (): readonly string[] => readdirSync(join(root, "image_manager/pulling"));
  const records = (): string =>
    readdirSync(join(root, "image_manager/pulled"))
      .map((name) => readFileSync(join(root, "image_manager/pulled", name), "utf8"))
      .join("");
  const isOnNode = async (image: string): Promise<boolean> =>
    (await containerd.ctr("images", "ls", "--quiet")).split("\n").includes(image);

  const refusals = [
    {
      reason: "RegistryUnavailable",
      answer: "RegistryUnavailable: dial tcp 192.0.2.1:443: connect: connection refused",
      because: "the registry is unavailable: dial tcp 192.0.2.1:443: connect: connection refused",
    },
    {
      reason: "SignatureValidationFailed",
      answer: "SignatureValidationFailed: source image rejected: a signature was required, but no signature exists",
      because:
        "the signature validation failed: source image rejected: a signature was required, but no signature exists",
    },
  ];
  for (const { reason, answer, because } of refusals) {
    it(`${reason} is the reason in the status and in the events, and the pull is tried again`, async () => {
      const name = reason.toLowerCase();
      const image = await privateImage(name);
      proxy.refuse = (method) => (method === "PullImage" ? { code: UNKNOWN, message: answer } : undefined);
      site.write(podOf(name, image));
      const message = `image pull failed for ${image} because ${because}`;
      const waiting = await site.pod(name, "waits", ({ containers: [main] }) => main?.reason === "ImagePullBackOff");
      assert.equal(waiting.containers[0]?.message, `Back-off pulling image "${image}": ${reason}: ${message}`);
      const events = waiting.events.map((one) => `${one.type} ${one.reason} ${one.message}`);
      const expected = [
        `Normal Pulling Pulling image "${image}"`,
        `Warning Failed Failed to pull image "${image}": ${answer}`,
        `Warning Failed Error: ${reason}`,
        `Normal BackOff Back-off pulling image "${image}"`,
        "Warning Failed Error: ImagePullBackOff",
      ];
      assert.deepEqual(
        events.filter((one) => expected.includes(one)),
        expected,
        events.join("\n"),
      );
      assert.match((await site.run("explain", name)).stdout, new RegExp(`because ${because.slice(0, 30)}`));
      assert.deepEqual(intents(), [], "the runtime has said that it failed");
      proxy.heal();
      await site.running(name);
      await remove(name);
    });
  }

  it("an answer that only names a reason of its own further behind is a plain error", async () => {
    const image = await privateImage("plain");
    const answer = 'failed to pull image: registry said "RegistryUnavailable: try later"';
    proxy.refuse = (method) => (method === "PullImage" ? { code: UNKNOWN, message: answer } : undefined);
    site.write(podOf("plain", image));
    const waiting = await site.pod("plain", "waits", ({ containers }) => containers[0]?.reason === "ImagePullBackOff");
    assert.equal(waiting.containers[0]?.message, `Back-off pulling image "${image}": ErrImagePull: ${answer}`);
    await remove("plain");
  });

  /** Has the runtime complete a pull whose answer never reaches the agent; resolves once the image is on the node. */
  const pullUnanswered = async (name: string): Promise<{ image: string; release: () => void }> => {
    const image = await privateImage(name);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const before = proxy.held.get("PullImage") ?? 0;
    proxy.hold = (method) => (method === "PullImage" ? held : undefined);
    site.write(podOf(name, image));
    await until("the runtime has pulled it", () => (proxy.held.get("PullImage") ?? 0) > before);
    assert.ok(await isOnNode(image));
    assert.deepEqual(intents(), [recordFileName(image)]);
    return { image, release };
  };
  /** The image is on the node, and a pod that has not pulled it may not use it. */
  const assertVerified = async (name: string, image: string): Promise<void> => {
    site.write(podOf(name, image, "Never"));
    await site.event("ErrImageNeverPull", name, /is not present with pull policy of Never/);
    assert.ok(await isOnNode(image));
    await remove(name);
  };
  /** A pull with the password lets all pods of the node use the image. */
  const assertUsable = async (name: string, image: string): Promise<void> => {
    site.write(podOf(name, image));
    await site.running(name);
    await until("it is recorded", () =>
      records().includes(`"${image.replace(/:1$/, "")}":{"nodePodsAccessible":true}`),
    );
    await remove(name);
    site.write(podOf(`${name}-again`, image, "Never"));
    await site.running(`${name}-again`);
    await remove(`${name}-again`);
  };

  it("a pull that the runtime completes in the instant in which it is cancelled is recorded without access", async () => {
    const { image, release } = await pullUnanswered("cancelled");
    site.remove("cancelled");
    await until("the call was given up", () => proxy.givenUp.get("PullImage") === 1);
    // Before the pod is gone: five seconds after a cancelled pull the runtime is asked what came of it.
    assert.deepEqual(intents(), [recordFileName(image)], "it is not known what came of it");
    release();
    proxy.heal();
    await site.gone("cancelled");
    await assertVerified("too-early", image);
    await until("the intent is a record", () => intents().length === 0);
    assert.ok(!records().includes("private/cancelled"), "nobody has shown that he may use it");
    await assertVerified("too-late", image);
    await assertUsable("allowed", image);
  });

  it("a pull whose answer comes in the instant in which its pod is removed is recorded either way", async () => {
    const { image, release } = await pullUnanswered("racing");
    site.remove("racing");
    release();
    proxy.heal();
    await site.gone("racing");
    await until("nothing is intended any more", () => intents().length === 0);
    const isOpen = records().includes(`"${image.replace(/:1$/, "")}":{"nodePodsAccessible":true}`);
    if (!isOpen) await assertVerified("raced", image);
    await assertUsable("later", image);
  });

  it("a pull that is complete when the agent is killed is recorded without access by the next one", async () => {
    const { image, release } = await pullUnanswered("killed");
    await agent.end("SIGKILL");
    site.remove("killed");
    release();
    proxy.heal();
    agent = await start();
    await until("the intent is a record", () => intents().length === 0);
    await assertVerified("unproven", image);
    await assertUsable("proven", image);
  });
});
