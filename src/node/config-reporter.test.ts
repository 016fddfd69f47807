import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ApiError, type KubeApi } from "../adapters/kubeapi/index.ts";
import type { ConfigSource, DynamicReport } from "../config/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Node } from "../model/generated/types.ts";
import { ConfigReporter } from "./config-reporter.ts";
import { CONFIG_STATUS_ANNOTATION } from "./config-status.ts";

const LOCAL: DynamicReport = {
  directory: "/d",
  state: "local",
  assigned: undefined,
  active: undefined,
  lastKnownGood: undefined,
};

function onTrial(resourceVersion: string): DynamicReport {
  const source: ConfigSource = {
    kind: "configMap",
    namespace: "ops",
    name: "web",
    uid: "u",
    resourceVersion,
    key: "kubelet",
  };
  return { ...LOCAL, state: "trial", assigned: source, active: source };
}

/** A node on a server that takes the annotation, and `status.config` only if it is an old one. */
class Scene {
  readonly clock = new FakeClock();
  readonly patches: { metadata?: { annotations: Record<string, string | null> }; status?: object }[] = [];
  readonly events: string[] = [];
  kicks = 0;
  isAway = false;
  keepsAnnotations = true;
  current: Node | undefined;
  private reported = LOCAL;
  private readonly changed = new Set<() => void>();
  private readonly listeners = new Set<(node: Node) => void>();

  constructor(t: TestContext) {
    const stop = manyListeners();
    const patch = async (_: unknown, { body }: { body: Scene["patches"][number] }): Promise<Node> => {
      if (this.isAway) throw new ApiError("Unavailable", "away");
      this.patches.push(body);
      const { metadata, ...rest } = this.current ?? { metadata: { name: "n" }, spec: {} };
      const annotations = { ...metadata.annotations };
      for (const [name, value] of Object.entries(this.keepsAnnotations ? (body.metadata?.annotations ?? {}) : {})) {
        if (value === null) delete annotations[name];
        else annotations[name] = value;
      }
      return { ...rest, metadata: { ...metadata, annotations } };
    };
    const reporter = new ConfigReporter(
      {
        api: { patch: patch as unknown as KubeApi["patch"] }, // reason: only nodes are patched here
        clock: this.clock,
        log: silent,
        random: () => 0,
        node: this,
        dynamic: { report: () => this.reported, onChange: (fn) => void this.changed.add(fn) },
        event: (type, reason, message) => this.events.push(`${type} ${reason} ${message}`),
      },
      "n",
    );
    const running = reporter.run(stop.signal);
    t.after(async () => {
      stop.abort();
      await running;
    });
  }

  onNode(fn: (node: Node) => void): void {
    this.listeners.add(fn);
  }

  observed(node: Node): void {
    this.current = node;
    for (const listener of this.listeners) listener(node);
  }

  kick(): void {
    this.kicks++;
  }

  async tell(report: DynamicReport): Promise<void> {
    this.reported = report;
    for (const fn of this.changed) fn();
    await this.clock.advance(0);
  }

  get told(): unknown {
    const text = this.current?.metadata.annotations?.[CONFIG_STATUS_ANNOTATION];
    return text === undefined ? undefined : JSON.parse(text).active?.configMap.resourceVersion;
  }
}

const node: Node = { metadata: { name: "n", uid: "1" }, spec: {} };

test("each change is told once: annotation, condition and event; nothing while there is nothing to tell", async (t) => {
  const scene = new Scene(t);
  scene.observed(node);
  await scene.clock.advance(60_000);
  assert.deepEqual([scene.patches.length, scene.kicks], [0, 0]);
  await scene.tell(onTrial("2"));
  assert.equal(scene.told, "2");
  await scene.tell({ ...onTrial("2"), state: "good", lastKnownGood: onTrial("2").active });
  await scene.tell(LOCAL);
  assert.equal(scene.told, undefined);
  assert.deepEqual([scene.patches.length, scene.kicks], [3, 3]);
  const path = "/api/v1/namespaces/ops/configmaps/web (u/2/kubelet)";
  assert.deepEqual(scene.events, [
    `Normal KubeletConfigChanged Kubelet configuration in force now: ${path}`,
    "Normal KubeletConfigChanged Kubelet configuration in force now: the local configuration",
  ]);
});

test("a node that is not registered yet, and a server that is away, are waited for", async (t) => {
  const scene = new Scene(t);
  await scene.tell(onTrial("2"));
  assert.equal(scene.patches.length, 0);
  scene.isAway = true;
  scene.observed(node);
  await scene.clock.advance(5000);
  scene.isAway = false;
  await scene.clock.advance(30_000);
  assert.equal(scene.told, "2");
});

test("an annotation that somebody removed is written again; a server that drops it is not asked again", async (t) => {
  const scene = new Scene(t);
  scene.observed(node);
  await scene.tell(onTrial("2"));
  scene.observed(node);
  await scene.clock.advance(0);
  assert.deepEqual([scene.told, scene.patches.length], ["2", 2]);
  scene.keepsAnnotations = false;
  scene.observed(node);
  await scene.clock.advance(60_000);
  assert.equal(scene.patches.length, 3);
});

test("status.config is sent to a server that keeps spec.configSource, and to no other", async (t) => {
  const scene = new Scene(t);
  scene.observed({ ...node, spec: { configSource: {} } });
  await scene.tell(onTrial("2"));
  const configMap = { namespace: "ops", name: "web", uid: "u", resourceVersion: "2", kubeletConfigKey: "kubelet" };
  const told = { assigned: { configMap }, active: { configMap }, lastKnownGood: null, error: null };
  assert.deepEqual(scene.patches[0]?.status, { config: told });
  scene.observed(node);
  await scene.tell(onTrial("3"));
  assert.equal(scene.patches.at(-1)?.status, undefined);
});
