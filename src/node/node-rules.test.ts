import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAgentOptions } from "../config/index.ts";
import { NodeRules } from "./node-rules.ts";

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
