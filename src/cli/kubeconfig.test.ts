import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { kubeconfigText } from "../apiserver/serve/kubeconfig.ts";
import { type Kubeconfig, mergeKubeconfig } from "./merge-kubeconfig.ts";

const own = parse(
  kubeconfigText({
    server: "https://127.0.0.1:6443",
    authority: "ca",
    administrator: { certificate: "crt", key: "key" },
  }),
) as Kubeconfig;

test("the written kubeconfig has one cluster, user and context", () => {
  assert.deepEqual(own, {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "kubelet", cluster: { server: "https://127.0.0.1:6443", "certificate-authority-data": "Y2E=" } },
    ],
    users: [{ name: "kubelet", user: { "client-certificate-data": "Y3J0", "client-key-data": "a2V5" } }],
    contexts: [{ name: "kubelet", context: { cluster: "kubelet", user: "kubelet" } }],
    "current-context": "kubelet",
  });
});

test("merging keeps what others wrote, replaces our own and switches to it", () => {
  const others = {
    kind: "Config",
    preferences: { colors: true },
    clusters: [{ name: "prod" }, { name: "kubelet", cluster: { server: "old" } }],
    users: [{ name: "prod" }],
    "current-context": "prod",
  };
  const merged = mergeKubeconfig(others, own);
  assert.deepEqual(merged["preferences"], { colors: true });
  assert.deepEqual(
    (merged["clusters"] as { name: string }[]).map(({ name }) => name),
    ["prod", "kubelet"],
  );
  assert.equal(merged["current-context"], "kubelet");
  assert.deepEqual(mergeKubeconfig(merged, own), merged);
});

test("merging into nothing is the kubeconfig itself", () => assert.deepEqual(mergeKubeconfig({}, own), own));
