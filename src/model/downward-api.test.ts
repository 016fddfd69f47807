import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { ConfigError } from "./config-error.ts";
import { type FieldFacts, fieldValue } from "./downward-api.ts";
import type { Pod } from "./generated/types.ts";

const facts: FieldFacts = { podIps: ["10.0.0.5", "fd00::5"], hostIps: ["192.0.2.1", "2001:db8::1"] };

describe("fields", () => {
  const plain = pod("web", "uid-1").container("app").with({ nodeName: "n1", serviceAccountName: "sa" }).build();
  const of: Pod = {
    ...plain,
    metadata: {
      ...plain.metadata,
      labels: { b: "2", "example.org/a": "1" },
      annotations: { note: 'say "hi"\nbye', "k'q": "quoted" },
    },
  };
  const cases: [string, string][] = [
    ["metadata.name", "web"],
    ["metadata.namespace", "default"],
    ["metadata.uid", "uid-1"],
    ["metadata.labels", 'b="2"\nexample.org/a="1"'],
    ["metadata.annotations", 'k\'q="quoted"\nnote="say \\"hi\\"\\nbye"'],
    ["metadata.labels['example.org/a']", "1"],
    ["metadata.annotations['note']", 'say "hi"\nbye'],
    ["metadata.labels['missing']", ""],
    ["metadata.labels['constructor']", ""],
    ["metadata.annotations['toString']", ""],
    ["spec.nodeName", "n1"],
    ["spec.serviceAccountName", "sa"],
    ["status.hostIP", "192.0.2.1"],
    ["status.hostIPs", "192.0.2.1,2001:db8::1"],
    ["status.podIP", "10.0.0.5"],
    ["status.podIPs", "10.0.0.5,fd00::5"],
  ];
  for (const [path, want] of cases) test(path, () => assert.equal(fieldValue(path, of, facts), want));

  test("that containers may not read are a configuration error", () => {
    for (const path of ["status.phase", "metadata.labels['a", "spec.restartPolicy", ""]) {
      assert.throws(() => fieldValue(path, of, facts), ConfigError, path);
    }
  });

  test("an address that is not known is empty", () => {
    assert.equal(fieldValue("status.podIP", of, { ...facts, podIps: [] }), "");
  });
});
