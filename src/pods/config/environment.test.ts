import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { EnvVar, Pod } from "../../model/generated/types.ts";
import { ConfigError } from "./config-error.ts";
import { type EnvironmentFacts, environment, fieldValue } from "./environment.ts";

const facts: EnvironmentFacts = {
  podIps: ["10.0.0.5", "fd00::5"],
  hostIps: ["192.0.2.1", "2001:db8::1"],
  allocatable: { cpu: "2", memory: "1Gi" },
};

function env(...variables: readonly EnvVar[]): Record<string, string> {
  const of = pod("web").container("app", { env: variables }).build();
  const container = of.spec.containers[0] ?? { name: "" };
  return Object.fromEntries(environment(of, container, facts).map(({ name, value }) => [name, value]));
}

describe("variables", () => {
  const cases: { name: string; env: EnvVar[]; want: Record<string, string> }[] = [
    { name: "without a value are empty", env: [{ name: "A" }], want: { A: "" } },
    {
      name: "see those before them",
      env: [
        { name: "A", value: "1" },
        { name: "B", value: "$(A)2" },
        { name: "C", value: "$(B)3" },
      ],
      want: { A: "1", B: "12", C: "123" },
    },
    {
      name: "do not see those after them, nor themselves",
      env: [
        { name: "A", value: "$(B) $(A)" },
        { name: "B", value: "1" },
      ],
      want: { A: "$(B) $(A)", B: "1" },
    },
    {
      name: "the later one of a name wins, and sees the earlier one",
      env: [
        { name: "PATH", value: "/bin" },
        { name: "PATH", value: "/own:$(PATH)" },
      ],
      want: { PATH: "/own:/bin" },
    },
    { name: "two dollars are one", env: [{ name: "A", value: "$$(B) $$" }], want: { A: "$(B) $" } },
    {
      name: "what comes from a field is not expanded",
      env: [
        { name: "A", value: "1" },
        { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        { name: "C", value: "$(B)" },
      ],
      want: { A: "1", B: "web", C: "web" },
    },
    {
      name: "may come from the container's resources",
      env: [{ name: "CPUS", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } }],
      want: { CPUS: "2" },
    },
  ];
  for (const { name, env: variables, want } of cases) test(name, () => assert.deepEqual(env(...variables), want));

  test("stand once each in the list that the runtime gets", () => {
    const of = pod("web")
      .container("app", {
        env: [
          { name: "A", value: "1" },
          { name: "A", value: "2" },
        ],
      })
      .build();
    const container = of.spec.containers[0] ?? { name: "" };
    assert.deepEqual(environment(of, container, facts), [{ name: "A", value: "2" }]);
  });

  test("of a source that is not known are a configuration error that names the variable", () => {
    const secret: EnvVar = { name: "TOKEN", valueFrom: { secretKeyRef: { name: "s", key: "k" } } };
    assert.throws(
      () => env(secret),
      (error: Error) => error instanceof ConfigError && /TOKEN/.test(error.message),
    );
  });
});

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
