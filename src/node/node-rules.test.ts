import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAgentOptions } from "../config/index.ts";
import { NodeRules } from "./node-rules.ts";

test("a filesystem that hangs does not keep what the runtime has told back", async () => {
  const { values } = parseAgentOptions(["--pod-manifest-path=/m"]);
  const rules = new NodeRules({
    nodeName: "here",
    options: () => values,
    apiNode: () => undefined,
    storageSize: () => new Promise(() => undefined),
  });
  const status = { ready: true, networkReady: true, message: "", handlers: [], supplementalGroupsPolicy: true };
  void rules.refresh({ status: async () => status }, { signal: new AbortController().signal });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(rules.admission().hasStrictGroups, true);
});

test("recursive read-only mounts are a feature of each handler", async () => {
  const { values } = parseAgentOptions(["--pod-manifest-path=/m"]);
  const rules = new NodeRules({ nodeName: "here", options: () => values, apiNode: () => undefined });
  const handler = (name: string, recursiveReadOnlyMounts: boolean) => ({
    name,
    recursiveReadOnlyMounts,
    userNamespaces: false,
  });
  const status = {
    ready: true,
    networkReady: true,
    message: "",
    handlers: [handler("old", false), handler("new", true)],
    supplementalGroupsPolicy: false,
  };
  assert.equal(rules.hasRecursiveReadOnly("new"), false, "not known yet");
  await rules.refresh({ status: async () => status }, { signal: new AbortController().signal });
  const answers = ["old", "new", "other", undefined].map((name) => rules.hasRecursiveReadOnly(name));
  assert.deepEqual(answers, [false, true, false, false]);
});

test("pods are checked against the features that the node declares, if it declares any", () => {
  const declared = (...gates: string[]): readonly string[] | undefined => {
    const { values } = parseAgentOptions(["--pod-manifest-path=/m", `--feature-gates=${gates.join()}`]);
    const rules = new NodeRules({ nodeName: "here", options: () => values, apiNode: () => undefined });
    return rules.admission().declaredFeatures;
  };
  const name = "RestartAllContainersOnContainerExits";
  assert.equal(declared()?.includes(name), true);
  assert.equal(declared(`${name}=false`)?.includes(name), false);
  assert.equal(declared("NodeDeclaredFeatures=false"), undefined);
});
