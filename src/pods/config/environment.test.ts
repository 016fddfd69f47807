import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { Container, EnvVar } from "../../model/generated/types.ts";
import { ConfigError } from "./config-error.ts";
import { type EnvironmentFacts, environment } from "./environment.ts";

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
});

describe("variables of files", () => {
  const files = new Map([
    ["v/p", "TOKEN='abc'\nEMPTY=''\n"],
    ["v/bad", "nonsense secret\n"],
  ]);
  const ref = (more: object): EnvVar => {
    return { name: "X", valueFrom: { fileKeyRef: { volumeName: "v", path: "p", key: "TOKEN", ...more } } };
  };
  const of = (...variables: EnvVar[]): Record<string, string> => {
    const web = pod("web").container("app", { env: variables }).build();
    const list = environment(web, web.spec.containers[0] ?? { name: "" }, { ...facts, files });
    return Object.fromEntries(list.map(({ name, value }) => [name, value]));
  };

  test("have the value of their key, which others may use", () => {
    assert.deepEqual(of(ref({}), { name: "Y", value: "<$(X)>" }), { X: "abc", Y: "<abc>" });
  });

  test("are left out when optional and absent or empty", () => {
    assert.deepEqual(of(ref({ key: "NONE", optional: true })), {});
    assert.deepEqual(of(ref({ key: "EMPTY", optional: true })), {});
    assert.deepEqual(of(ref({ path: "none", optional: true })), {});
  });

  const errors: [EnvVar, RegExp][] = [
    [ref({ key: "NONE" }), /^couldn't find key NONE in file "p" of volume "v"$/],
    [ref({ key: "EMPTY" }), /^couldn't find key EMPTY in file/],
    [ref({ path: "none" }), /^file "none" of volume "v" not found$/],
    [ref({ path: "bad" }), /^couldn't parse env file: line 1 [^"]*"bad" of volume "v"\)$/],
    [ref({ path: "bad", optional: true }), /^couldn't parse env file/],
  ];
  for (const [variable, says] of errors) {
    test(`say what is wrong: ${says.source}`, () => {
      assert.throws(
        () => of(variable),
        (error: Error) => error instanceof ConfigError && says.test(error.message) && !/secret/.test(error.message),
      );
    });
  }
});

describe("variables of ConfigMaps and Secrets", () => {
  const bytes = (values: Record<string, string>): Map<string, Uint8Array> =>
    new Map(Object.entries(values).map(([key, value]) => [key, Buffer.from(value)]));
  const objects = new Map([
    ["ConfigMap/default/settings", bytes({ colour: "green", size: "7", "odd.key": "1" })],
    ["Secret/default/login", bytes({ user: "me", password: "näive" })],
  ]);
  const of = (container: Partial<Container>): Record<string, string> => {
    const web = pod("web").container("app", container).build();
    const list = environment(web, web.spec.containers[0] ?? { name: "" }, { ...facts, objects });
    return Object.fromEntries(list.map(({ name, value }) => [name, value]));
  };
  const settings = { name: "settings" };
  const missing = { name: "missing" };
  const cases: { name: string; given: Partial<Container>; want: Record<string, string> }[] = [
    {
      name: "one key of each",
      given: {
        env: [
          { name: "A", valueFrom: { configMapKeyRef: { ...settings, key: "colour" } } },
          { name: "B", valueFrom: { secretKeyRef: { name: "login", key: "password" } } },
          { name: "C", value: "$(A) $(B)" },
        ],
      },
      want: { A: "green", B: "näive", C: "green näive" },
    },
    {
      name: "whole objects, with a prefix, also under names that no shell would take",
      given: { envFrom: [{ prefix: "S_", configMapRef: settings }] },
      want: { S_colour: "green", S_size: "7", "S_odd.key": "1" },
    },
    {
      name: "a later object wins over an earlier one, and env over both",
      given: {
        envFrom: [
          { prefix: "user", configMapRef: { name: "missing", optional: true } },
          { secretRef: { name: "login" } },
        ],
        env: [{ name: "user", value: "not $(user)" }],
      },
      want: { user: "not me", password: "näive" },
    },
    {
      name: "an optional key or object that is missing leaves the variable out",
      given: {
        env: [
          { name: "A", valueFrom: { configMapKeyRef: { ...settings, key: "gone", optional: true } } },
          { name: "B", valueFrom: { secretKeyRef: { ...missing, key: "k", optional: true } } },
        ],
        envFrom: [{ secretRef: { ...missing, optional: true } }],
      },
      want: {},
    },
  ];
  for (const { name, given, want } of cases) test(name, () => assert.deepEqual(of(given), want));

  const refused: [string, Partial<Container>, RegExp][] = [
    [
      "a missing key",
      { env: [{ name: "A", valueFrom: { configMapKeyRef: { ...settings, key: "gone" } } }] },
      /couldn't find key gone in ConfigMap default\/settings/,
    ],
    [
      "a missing secret",
      { env: [{ name: "A", valueFrom: { secretKeyRef: { ...missing, key: "k" } } }] },
      /secret "missing" not found/,
    ],
    ["a missing object as a whole", { envFrom: [{ configMapRef: missing }] }, /configmap "missing" not found/],
  ];
  for (const [name, given, words] of refused) {
    test(`${name} is a configuration error`, () => {
      assert.throws(
        () => of(given),
        (error: Error) => error instanceof ConfigError && words.test(error.message),
      );
    });
  }
});

describe("an environment of more than 4 MiB is a configuration error, as soon as it is", () => {
  const MIB = 2 ** 20;
  const big = Buffer.alloc(MIB, "x");
  const objects = new Map([["ConfigMap/default/big", new Map([["k", big]])]]);
  const fromBig = (name: string): EnvVar => ({
    name,
    valueFrom: { configMapKeyRef: { name: "big", key: "k" } },
  });
  const build = (container: Partial<Container>, more: Partial<EnvironmentFacts> = {}): readonly unknown[] => {
    const web = pod("web").container("app", container).build();
    return environment(web, web.spec.containers[0] ?? { name: "" }, { ...facts, objects, ...more });
  };
  const doubling = Array.from({ length: 40 }, (_, i) => ({
    name: `V${i + 1}`,
    value: `$(V${i})$(V${i})`,
  }));
  const cases: [string, () => unknown][] = [
    ["each variable twice the one before", () => build({ env: [{ name: "V0", value: "0123456789" }, ...doubling] })],
    ["one key by many names", () => build({ env: Array.from({ length: 6000 }, (_, i) => fromBig(`V${i}`)) })],
    ["one key by one name", () => build({ env: Array.from({ length: 6000 }, () => fromBig("V")) })],
    [
      "one object by many prefixes",
      () =>
        build({ envFrom: Array.from({ length: 6000 }, (_, i) => ({ prefix: `${i}`, configMapRef: { name: "big" } })) }),
    ],
    ["one value of many", () => build({ env: [fromBig("V"), { name: "W", value: "$(V)".repeat(100_000) }] })],
    ["services", () => build({}, { services: new Map([["V", "x".repeat(5 * MIB)]]) })],
  ];
  for (const [name, make] of cases) {
    test(name, () => {
      assert.throws(
        make,
        (error: Error) => error instanceof ConfigError && error.message === "environment takes more than 4194304 bytes",
      );
    });
  }

  test("what is shorter is not", () => {
    assert.equal(build({ env: ["A", "B", "C"].map(fromBig) }).length, 3);
  });

  test("a key is decoded once, however often it is named", () => {
    let reads = 0;
    const counted = new Proxy(Buffer.from("v"), {
      get(target, key) {
        if (key === "byteLength") reads++;
        return Reflect.get(target, key, target) as unknown;
      },
    });
    const of = new Map([["ConfigMap/default/big", new Map([["k", counted]])]]);
    assert.equal(build({ env: ["A", "B", "C"].map(fromBig) }, { objects: of }).length, 3);
    assert.equal(reads, 1);
  });
});

test("variables of services are seen last and never replace one of the container's", () => {
  const variables = [
    { name: "DB", value: "$(DB_SERVICE_HOST)" },
    { name: "WEB_SERVICE_HOST", value: "own" },
  ];
  const of = pod("web").container("app", { env: variables }).build();
  const services = new Map([
    ["DB_SERVICE_HOST", "10.0.0.9"],
    ["WEB_SERVICE_HOST", "10.0.0.8"],
  ]);
  const made = environment(of, of.spec.containers[0] ?? { name: "" }, { ...facts, services });
  assert.deepEqual(Object.fromEntries(made.map(({ name, value }) => [name, value])), {
    DB: "10.0.0.9",
    WEB_SERVICE_HOST: "own",
    DB_SERVICE_HOST: "10.0.0.9",
  });
});
