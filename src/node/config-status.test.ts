import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigSource, DynamicReport } from "../config/index.ts";
import type { Node } from "../model/generated/types.ts";
import { configPatch } from "./config-reporter.ts";
import { CONFIG_STATUS_ANNOTATION, configAnnotation, configConditions, configStatus } from "./config-status.ts";

const source = (resourceVersion: string): ConfigSource => ({
  kind: "configMap",
  namespace: "ops",
  name: "web",
  uid: "u",
  resourceVersion,
  key: "kubelet",
});
const shown = (resourceVersion: string) => ({
  configMap: { namespace: "ops", name: "web", uid: "u", resourceVersion, kubeletConfigKey: "kubelet" },
});
const file: ConfigSource = { ...source("1"), kind: "file", namespace: "", name: "/etc/k.yaml" };
const PATH = "/api/v1/namespaces/ops/configmaps/web";

function report(change: Partial<DynamicReport>): DynamicReport {
  const none = { assigned: undefined, active: undefined, lastKnownGood: undefined };
  return { directory: "/d", state: "local", ...none, ...change };
}

const conditions = [
  { name: "nothing but the local one: no condition", given: report({}), want: undefined },
  {
    name: "on trial",
    given: report({ state: "trial", assigned: source("2"), active: source("2") }),
    want: ["True", "OnTrial", `in force, on trial: ${PATH} (u/2/kubelet)`],
  },
  {
    name: "good, and part of it waits",
    given: report({ state: "good", assigned: source("2"), active: source("2"), waitsForRestart: true }),
    want: [
      "True",
      "LastKnownGood",
      `in force, and the last known good: ${PATH} (u/2/kubelet); some of its settings wait for a restart of the agent`,
    ],
  },
  {
    name: "rolled back to the local one",
    given: report({ state: "rolled back", assigned: source("2"), error: "maxPods: no" }),
    want: ["False", "RolledBack", "maxPods: no; in force: the local configuration"],
  },
  {
    name: "what cannot be had goes before what was wrong",
    given: report({ state: "rolled back", assigned: source("2"), error: "x", followed: { by: "b", error: "403" } }),
    want: ["False", "SyncFailed", "failed to sync: 403; in force: the local configuration"],
  },
  {
    name: "nothing could be had at all",
    given: report({ followed: { by: "b", error: "403" } }),
    want: ["False", "SyncFailed", "failed to sync: 403; in force: the local configuration"],
  },
] as const;
for (const { name, given, want } of conditions) {
  test(`condition of the configuration: ${name}`, () => {
    const [found] = configConditions(given, undefined, "now");
    assert.deepEqual(found && [found.status, found.reason, found.message], want);
  });
}

test("a condition keeps the time of its last change, and a long message is cut", () => {
  const bad = report({ state: "rolled back", assigned: source("2"), error: "x".repeat(5000) });
  const [first] = configConditions(bad, undefined, "t1");
  const [again] = configConditions(bad, first && [first], "t2");
  assert.equal(again?.lastTransitionTime, "t1");
  assert.equal(again?.lastHeartbeatTime, "t2");
  assert.ok((again?.message ?? "").length < 1200);
  const [good] = configConditions(
    report({ state: "good", assigned: source("2"), active: source("2") }),
    again && [again],
    "t3",
  );
  assert.equal(good?.lastTransitionTime, "t3");
});

test("the annotation names what is assigned, active and good, ConfigMaps and files", () => {
  assert.equal(configAnnotation(report({})), undefined);
  const told = report({ state: "rolled back", assigned: source("3"), active: file, lastKnownGood: file, error: "bad" });
  const local = { file: { name: "/etc/k.yaml", resourceVersion: "1" } };
  assert.deepEqual(JSON.parse(configAnnotation(told) ?? ""), {
    assigned: shown("3"),
    active: local,
    lastKnownGood: local,
    error: "bad",
  });
  assert.deepEqual(configStatus(told), { assigned: shown("3"), error: "bad" });
});

const good = report({ state: "good", assigned: source("2"), active: source("2"), lastKnownGood: source("2") });
const all = { assigned: shown("2"), active: shown("2"), lastKnownGood: shown("2") };
const annotation = configAnnotation(good) ?? "";
const node = (annotations: Record<string, string>, more: object = {}): Node => ({
  metadata: { name: "n", annotations },
  spec: {},
  ...more,
});
const told = { [CONFIG_STATUS_ANNOTATION]: annotation };
const old = { spec: { configSource: { configMap: { namespace: "ops", name: "web", kubeletConfigKey: "kubelet" } } } };
const patches = [
  { name: "nothing to tell, nothing told", given: [report({}), node({})], want: undefined },
  {
    name: "the annotation alone, where the server has no field",
    given: [good, node({})],
    want: { metadata: { annotations: told } },
  },
  { name: "told already", given: [good, node(told)], want: undefined },
  {
    name: "nothing more to tell",
    given: [report({}), node(told)],
    want: { metadata: { annotations: { [CONFIG_STATUS_ANNOTATION]: null } } },
  },
  {
    name: "a server that keeps the field is told in its status too",
    given: [good, node(told, old)],
    want: { status: { config: { ...all, error: null } } },
  },
  { name: "and not again", given: [good, node(told, { ...old, status: { config: all } })], want: undefined },
] as const;
for (const { name, given, want } of patches) {
  test(`patch of what is told of the configuration: ${name}`, () => {
    const [what, of] = given;
    assert.deepEqual(configPatch(what, of), want);
  });
}
