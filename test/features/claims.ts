/** A driver in a process of its own registers by its socket, prepares claims, and is killed at every step. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { DeviceClaim, KubeApi } from "../../src/adapters/kubeapi/index.ts";
import { composeClaims } from "../../src/claims/index.ts";
import { agentOptions, OptionStore, parseAgentOptions } from "../../src/config/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { silent } from "../../src/lib/log.ts";
import { runLoops } from "../../src/lib/loop.ts";
import { Metrics } from "../../src/lib/metrics.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import { composePlugins } from "../../src/plugins/index.ts";
import { pause, until } from "../integration/support/until.ts";
import { DraProcess } from "../support/dra-process.ts";
import { pod } from "../support/pods.ts";

const never = { signal: new AbortController().signal };

/** The parts of an agent that have to do with claims, on real sockets and a real disk. */
class ClaimNode {
  readonly dir = mkdtempSync(join(tmpdir(), "kts-dra-"));
  readonly root = join(this.dir, "r");
  readonly objects = new Map<string, DeviceClaim>();
  /** The pods that the node knows. */
  readonly pods = new Set<string>();
  readonly woken = new Set<string>();
  metrics = new Metrics();
  private stop = manyListeners();
  private done: Promise<unknown> = Promise.resolve();
  claims!: ReturnType<typeof composeClaims>["provider"];

  constructor() {
    mkdirSync(this.root);
    mkdirSync(join(this.dir, "cdi"));
  }

  start(): void {
    const clock = new SystemClock();
    this.stop = manyListeners();
    this.metrics = new Metrics();
    const deps = { clock, log: silent, metrics: this.metrics };
    const { plugins, loop } = composePlugins(deps, { rootDir: this.root });
    // reason: only these are called
    const api = {
      get: (_resource: unknown, { name }: { name: string }) => Promise.resolve(this.objects.get(name)),
      list: () => Promise.resolve({ items: [], continueToken: "", resourceVersion: "" }),
    } as unknown as KubeApi;
    const { provider, loops } = composeClaims(
      {
        ...deps,
        store: new OptionStore(agentOptions, parseAgentOptions([`--root-dir=${this.root}`]).values),
        api,
        nodeName: "node",
        isRegistered: () => true,
        plugins,
        desired: {
          isComplete: true,
          get: (uid) => (this.pods.has(uid) ? uid : undefined),
          onComplete: () => undefined,
        },
        observer: { get: () => undefined },
        pool: () => ({
          worker: () => undefined,
          isFinished: (uid) => !this.pods.has(uid),
          wake: (uid) => void this.woken.add(uid),
        }),
        listedAt: () => true,
      },
      this.stop.signal,
    );
    this.claims = provider;
    this.done = runLoops([loop, ...loops], this.stop);
  }

  /** As a kill does: nothing is tidied up. */
  async kill(): Promise<void> {
    this.stop.abort();
    await this.done.catch(() => undefined);
  }

  /** A claim that is allocated from drivers and reserved for a pod with a container that uses it. */
  claim(name: string, drivers: readonly string[]): Pod {
    const of = pod(`pod-${name}`)
      .container("main", { resources: { claims: [{ name: "c" }] } })
      .with({ resourceClaims: [{ name: "c", resourceClaimName: name }] })
      .build();
    const { uid = "" } = of.metadata;
    this.pods.add(uid);
    const status = {
      allocation: { devices: { results: drivers.map((driver) => ({ driver })) } },
      reservedFor: [{ resource: "pods", name: "p", uid }],
    };
    this.objects.set(name, { metadata: { name, namespace: "default", uid: `uid-${name}` }, status });
    return of;
  }

  cdi(of: Pod): readonly string[] {
    const [main] = of.spec.containers;
    assert.ok(main);
    return this.claims.claimsOf(of, main).flatMap(({ devices }) => devices.flatMap(({ cdiDevices }) => cdiDevices));
  }

  state(): string {
    return readFileSync(join(this.root, "dra_manager_state"), "utf8");
  }
}

describe("claims and a real driver", { timeout: 300_000 }, () => {
  const node = new ClaimNode();
  const place = { dir: node.dir, root: node.root, cdiDir: join(node.dir, "cdi") };
  const gpu = new DraProcess("gpu.example.com", place);
  const nic = new DraProcess("nic.example.com", place);
  const prepared = (of: Pod): Promise<boolean> =>
    until("it is prepared", () =>
      node.claims.prepare(of, never).then(
        () => true,
        () => false,
      ),
    );

  before(async () => {
    node.start();
    await Promise.all([gpu.register(), nic.register("v1beta1.DRAPlugin")]);
  });
  after(async () => {
    await node.kill();
    await Promise.all([gpu.end("SIGKILL"), nic.end("SIGKILL")]);
    rmSync(node.dir, { recursive: true, force: true });
  });

  it("drivers of v1 and v1beta1 prepare a claim of both, and unprepare it", async () => {
    const of = node.claim("both", [gpu.name, nic.name]);
    await prepared(of);
    assert.equal(node.cdi(of).length, 4);
    await node.claims.unprepare(of.metadata.uid ?? "", never);
    assert.deepEqual([gpu.asked(/^unprepare ok both$/), nic.asked(/^unprepare ok both$/)], [1, 1]);
    const { body } = await node.metrics.expose();
    assert.match(body, /dra_grpc_operations_duration_seconds_count\{.*v1beta1.DRAPlugin\/NodePrepare.*"OK"\} 1/);
  });

  it("a driver that is killed in the call, and one that is killed after it: asked again, prepared once more", async () => {
    const of = node.claim("killed", [gpu.name]);
    gpu.behave({ prepare: "die" });
    await assert.rejects(node.claims.prepare(of, never), /NodePrepareResources/);
    gpu.behave({});
    await gpu.register();
    await prepared(of);
    await gpu.end("SIGKILL");
    await assert.rejects(node.claims.unprepare(of.metadata.uid ?? "", never), /unprepare dynamic resources/);
    await gpu.register();
    await until("it is unprepared", () =>
      node.claims.unprepare(of.metadata.uid ?? "", never).then(
        () => true,
        () => false,
      ),
    );
    assert.ok(!node.state().includes("uid-killed"));
  });

  it("the agent is killed while a driver hangs: the next one knows, and unprepares what nobody uses any more", async () => {
    const of = node.claim("orphan", [gpu.name]);
    gpu.behave({ prepare: "hang" });
    const controller = new AbortController();
    const waiting = node.claims.prepare(of, controller);
    await until("the driver hangs", () => gpu.asked(/^prepare hang orphan$/) > 0);
    controller.abort(new Error("killed"));
    await assert.rejects(waiting);
    await node.kill();
    assert.ok(node.state().includes("uid-orphan"));
    gpu.behave({});
    node.pods.delete(of.metadata.uid ?? "");
    const before = gpu.asked(/^registered$/);
    node.start();
    await gpu.registered(before + 1);
    await until("it is unprepared", () => gpu.asked(/^unprepare ok orphan$/) > 0);
    await until("nothing is on disk", () => !node.state().includes("uid-orphan"));
  });

  for (const [prepare, words] of [
    ["error", /no device for hostile/],
    ["huge", /too long or too many/],
    ["unknown", /unknown claim UID another-uid/],
    ["skip", /skipped 1/],
  ] as const) {
    it(`a driver that answers ${prepare} fails its claim only`, async () => {
      const hostile = node.claim("hostile", [gpu.name]);
      const fine = node.claim("fine", [nic.name]);
      gpu.behave({ prepare });
      await assert.rejects(node.claims.prepare(hostile, never), words);
      await prepared(fine);
      gpu.behave({});
      await prepared(hostile);
      for (const { metadata } of [hostile, fine]) await node.claims.unprepare(metadata.uid ?? "", never);
    });
  }

  it("hostile sockets in the directory keep nobody from registering", async () => {
    const registry = join(node.root, "plugins_registry");
    writeFileSync(join(registry, "file.sock"), "");
    const sockets: Socket[] = [];
    const silentServer = createServer((socket) => void sockets.push(socket)).listen(join(registry, "silent.sock"));
    await until("the silent socket was connected", () => sockets.length > 0);
    await gpu.end("SIGTERM");
    await gpu.register();
    await prepared(node.claim("beside", [gpu.name]));
    silentServer.close();
    for (const socket of sockets) socket.destroy();
    await node.claims.unprepare("uid-of-pod-beside", never);
  });

  it("health of devices wakes the pods that have them", async () => {
    const of = node.claim("health", [gpu.name]);
    await prepared(of);
    node.woken.clear();
    gpu.behave({ health: "Unhealthy" });
    const { uid = "" } = of.metadata;
    await until("the pod is woken", () => node.woken.has(uid));
    const [main] = of.spec.containers;
    assert.ok(main);
    const health = (): string | undefined => node.claims.healthOf(of, main)[0]?.resources?.[0]?.health;
    assert.equal(health(), "Unhealthy");
    node.woken.clear();
    await gpu.end("SIGKILL");
    await until("the pod is woken again", () => node.woken.has(uid));
    assert.equal(health(), "Unknown");
    gpu.behave({});
    await gpu.register();
    await node.claims.unprepare(uid, never);
    await pause(0);
  });
});
