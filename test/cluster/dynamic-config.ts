/** An agent in a real cluster gets its configuration from a ConfigMap that an annotation of its Node names. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { NodeCondition, NodeConfigStatus } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster } from "../support/cluster-site.ts";

skipWithoutCluster();

const HEAD = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
const MAP = "node-config";

describe("the configuration of a node comes from the cluster", () => {
  let site: ClusterSite;
  let agent: Program;
  const flags = (): string[] => [
    ...[`--config=${join(site.dir, "kubelet.json")}`, `--dynamic-config-dir=${join(site.dir, "dynamic")}`],
    "--config-trial-duration=2s",
  ];
  before(async () => {
    site = await ClusterSite.start({ controllers: true });
    writeFileSync(join(site.dir, "kubelet.json"), JSON.stringify({ ...HEAD, maxPods: 20 }));
    agent = await site.join(flags());
    await site.nodeReady();
  });
  beforeEach(() => assert.ok(!agent.isOver, agent.stderr.slice(-3000)));
  after(() => site?.close());

  const condition = (): NodeCondition | undefined =>
    site.node()?.status?.conditions?.find(({ type }) => type === "KubeletConfigOk");
  const status = (): NodeConfigStatus | undefined => {
    const text = site.node()?.metadata.annotations?.["kubelet-ts/config-status"];
    return text === undefined ? undefined : (JSON.parse(text) as NodeConfigStatus); // reason: written by the agent
  };
  const maxPods = (): string | undefined => site.node()?.status?.capacity?.["pods"];
  const annotate = (value: string): void =>
    void site.kubectl("annotate", "node", site.nodeName, "--overwrite", `kubelet-ts/config-source${value}`);
  const map = (content: object | string): void =>
    site.apply({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: MAP, namespace: "kube-system" },
      data: { kubelet: typeof content === "string" ? content : JSON.stringify({ ...HEAD, ...content }) },
    });
  const is = async (what: string, check: () => boolean): Promise<void> =>
    void (await until(what, check, {
      limitMs: 90_000,
      seen: () => [maxPods(), condition(), status(), agent.stderr.slice(-2000)],
    }));
  const role = { name: "reads-node-config", namespace: "kube-system" };

  test("without an annotation there is nothing to tell", () => {
    assert.equal(maxPods(), "20");
    assert.equal(condition(), undefined);
    assert.equal(status(), undefined);
  });

  test("a node that may not read the ConfigMap says which right it needs, and keeps its configuration", async () => {
    map({ maxPods: 33 });
    annotate(`=kube-system/${MAP}`);
    await is("the condition is false", () => condition()?.status === "False");
    assert.equal(condition()?.reason, "SyncFailed");
    for (const word of [
      "Role in namespace kube-system",
      `named ${MAP}`,
      `RoleBinding`,
      `system:node:${site.nodeName}`,
    ]) {
      assert.ok(condition()?.message?.includes(word), `${word} in ${condition()?.message}`);
    }
    await is("the annotation tells it too", () => (status()?.error ?? "").includes("RoleBinding"));
    assert.equal(maxPods(), "20");
  });

  test("once it is granted, the configuration is in force while the agent runs, and later the last known good", async () => {
    site.apply({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: role,
      rules: [{ apiGroups: [""], resources: ["configmaps"], resourceNames: [MAP], verbs: ["get", "list", "watch"] }],
    });
    site.apply({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: role,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: role.name },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: `system:node:${site.nodeName}` }],
    });
    await is("33 pods may run", () => maxPods() === "33");
    await is("it has held its trial", () => status()?.lastKnownGood !== undefined);
    const { uid, resourceVersion } = site.get<{ metadata: { uid: string; resourceVersion: string } }>(
      ...["configmap", MAP, "-n", "kube-system"],
    ).metadata;
    const configMap = { namespace: "kube-system", name: MAP, uid, resourceVersion, kubeletConfigKey: "kubelet" };
    assert.deepEqual(status(), {
      assigned: { configMap },
      active: { configMap },
      lastKnownGood: { configMap },
    });
    await is("the condition is true", () => condition()?.reason === "LastKnownGood");
    assert.equal(condition()?.status, "True");
    await is("an event tells of it", () =>
      /KubeletConfigChanged[\s\S]*configmaps\/node-config/.test(site.kubectl("get", "events")),
    );
  });

  test("an edited ConfigMap is in force within a moment", async () => {
    map({ maxPods: 34 });
    await is("34 pods may run", () => maxPods() === "34");
    await is("it has held its trial", () => condition()?.reason === "LastKnownGood");
  });

  test("one that is not valid is rolled back to the last known good", async () => {
    map({ maxPods: -1 });
    await is("the condition is false", () => condition()?.status === "False");
    assert.equal(condition()?.reason, "RolledBack");
    assert.match(condition()?.message ?? "", /maxPods/);
    await is("the annotation tells it too", () => /maxPods/.test(status()?.error ?? ""));
    const { assigned, active, lastKnownGood } = status() ?? {};
    assert.deepEqual(active, lastKnownGood);
    assert.notDeepEqual(assigned, active);
    assert.equal(maxPods(), "34");
  });

  test("a restarted agent goes on with the last known good, and takes the next good one", async () => {
    await agent.end("SIGTERM");
    agent = await site.join(flags());
    await is("it has started", () => /Rolled back dynamic configuration/.test(agent.stderr));
    await pause(3000);
    assert.equal(maxPods(), "34");
    assert.equal(condition()?.reason, "RolledBack");
    map({ maxPods: 35 });
    await is("35 pods may run", () => maxPods() === "35");
    await is("the condition is true", () => condition()?.status === "True");
  });

  test("a ConfigMap that is deleted leaves its configuration in force", async () => {
    site.kubectl("delete", "configmap", MAP, "-n", "kube-system");
    await is("the condition is false", () => condition()?.reason === "SyncFailed");
    assert.match(condition()?.message ?? "", /there is no ConfigMap kube-system\/node-config/);
    assert.equal(maxPods(), "35");
  });

  test("without the annotation the node goes back to its own configuration, and tells nothing any more", async () => {
    annotate("-");
    await is("20 pods may run", () => maxPods() === "20");
    await is("the condition is gone", () => condition() === undefined);
    await is("the annotation is gone", () => status() === undefined);
    await is("an event tells of it", () =>
      /KubeletConfigChanged[\s\S]*local configuration/.test(site.kubectl("get", "events")),
    );
  });
});
