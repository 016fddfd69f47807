import assert from "node:assert/strict";
import { test } from "node:test";
import { agentOptions, type OptionName, optionNames, optionOf } from "./agent-options.ts";
import { API_VERSION, type ConfigDocument, KIND } from "./document.ts";
import { encodeConfiguration } from "./encode.ts";
import { loadConfiguration } from "./load.ts";
import { parseOptions } from "./parse.ts";

/** Values of every kind; for each option the first two that fit and are no default are used. */
const SAMPLES: readonly unknown[] = [
  ...[true, false, 7, 8, 90, 95, 131072, 262144, 0.5, 0.6, "5s", "6s", "1ms", "2ms", "11Mi", "12Mi"],
  ...[
    "/a",
    "/b",
    "unix:///a.sock",
    "unix:///b.sock",
    "10.0.0.1",
    "10.0.0.2",
    "http://a/",
    "http://b/",
    "1.35",
    "a",
    "b",
  ],
  ...[
    "json",
    "systemd",
    "static",
    "Static",
    "best-effort",
    "restricted",
    "pod",
    "hairpin-veth",
    "none",
    "Get",
    "Cache",
  ],
  ...["AlwaysAllow", "VersionTLS12", "VersionTLS13", "NeverVerify", "AlwaysVerify", "NoSwap", "LimitedSwap"],
  ...["TieredReservation", "0-1", "2-3", 123, 456, [23], [24], ["none"], ["pods", "system-reserved"], ["10.0.0.1"]],
  ...["10.1.0.0/24", "10.2.0.0/24"],
  ...[["10.0.0.2"], ["TLS_AES_128_GCM_SHA256"], ["TLS_AES_256_GCM_SHA384"], ["a"], ["b"], ["kernel.a"], ["net.b"]],
  ...[
    { "memory.available": "5%" },
    { "nodefs.available": "6%" },
    { "memory.available": "5s" },
    { "pid.available": "6s" },
  ],
  ...[{ cpu: "1" }, { memory: "1Gi" }, { memory: "50%" }, { memory: "60%" }, { EnvFiles: true }, { PodsAPI: true }],
  ...[{ "full-pcpus-only": "true" }, { "align-by-socket": "true" }, { "prefer-closest-numa-nodes": "true" }],
  ...[{ "max-allowable-numa-nodes": "9" }, { a: ["b"] }, { c: ["d"] }, { endpoint: "a:1" }, { endpoint: "b:2" }],
  ...[[{ key: "a", effect: "NoSchedule" }], [{ key: "b", effect: "NoExecute" }]],
  ...[[{ numaNode: 0, limits: { memory: "1Gi" } }], [{ numaNode: 1, limits: { memory: "1Gi" } }]],
  ...[[{ priority: 1, shutdownGracePeriodSeconds: 2 }], [{ priority: 3, shutdownGracePeriodSeconds: 4 }]],
  ...[[{ filePattern: "a", verbosity: 1 }], [{ filePattern: "b", verbosity: 2 }]],
];

function samplesOf(name: OptionName): unknown[] {
  const { kind, validate, default: usual, nullable, isPath } = optionOf(name);
  const found: unknown[] = [];
  for (const raw of SAMPLES) {
    // Relative paths and bare nanoseconds have tests of their own.
    if (isPath === true && !String(raw).startsWith("/")) continue;
    if (name === "logFlushFrequency" && typeof raw === "number") continue;
    let isFine = true;
    const fail = (): void => {
      isFine = false;
    };
    const value = kind.decode(raw, { problem: fail, unknownKey: fail });
    const isZero = value === 0 || value === "" || value === false;
    if (!isFine || value === undefined || (isZero && nullable !== true)) continue;
    if (JSON.stringify(kind.encode(value)) === JSON.stringify(kind.encode(usual))) continue;
    if (validate?.(value) === undefined) found.push(raw);
  }
  return found.slice(0, 2);
}

function document(file: string, field: string, raw: unknown): ConfigDocument {
  const value: Record<string, unknown> = { apiVersion: API_VERSION, kind: KIND };
  const steps = field.split(".");
  const last = steps.pop() ?? "";
  let into = value;
  for (const step of steps) {
    const below: Record<string, unknown> = {};
    into[step] = below;
    into = below;
  }
  into[last] = raw;
  return { file, directory: "/", value, line: 1, warnings: [] };
}

for (const name of optionNames) {
  const { field, flag, kind } = optionOf(name);
  if (field === undefined) continue;
  const [one, other = one] = samplesOf(name);

  test(`${field}: read from a file, over the default; a drop-in over it; a flag over both`, () => {
    assert.notEqual(one, undefined, "there is a sample");
    const none = { values: {}, given: new Set<string>(), problems: [] };
    const file = document("f", field, one);
    const fromFile = loadConfiguration({ flags: none, file });
    assert.deepEqual(kind.encode(fromFile.values[name]), one);
    assert.equal(fromFile.provenance.get(name)?.origin.from, "file");

    const dropIn = document("d", field, other);
    const fromDropIn = loadConfiguration({ flags: none, file, dropIns: [dropIn] });
    const wanted = kind.merges === true ? { ...Object(one), ...Object(other) } : other;
    assert.deepEqual(kind.encode(fromDropIn.values[name]), wanted);
    assert.equal(fromDropIn.provenance.get(name)?.origin.from, "drop-in");

    const reset = loadConfiguration({ flags: none, file, dropIns: [document("d", field, null)] });
    assert.deepEqual(reset.values[name], optionOf(name).default);

    if (flag === undefined || name === "staticPodURLHeader") return;
    const shown = kind.show(fromFile.values[name]);
    const parsed = parseOptions([`--${flag}=${shown}`], agentOptions);
    assert.deepEqual(parsed.problems, []);
    const fromFlag = loadConfiguration({ flags: parsed, file: document("f", field, other), dropIns: [dropIn] });
    const united = name === "featureGates" ? { ...Object(other), ...Object(one) } : one;
    assert.deepEqual(kind.encode(fromFlag.values[name]), united);
    assert.deepEqual(fromFlag.provenance.get(name)?.origin, { from: "flag", flag });
  });
}

test("all of it at once: what is written as a file is read as the same", () => {
  const flags = { values: {}, given: new Set<string>(), problems: [] };
  const dropIns = optionNames.flatMap((name) => {
    const { field } = optionOf(name);
    // It would add thresholds at the second reading.
    return field === undefined || name === "mergeDefaultEvictionSettings"
      ? []
      : [document("d", field, samplesOf(name)[0])];
  });
  const { values } = loadConfiguration({ flags, dropIns });
  const value = JSON.parse(JSON.stringify(encodeConfiguration(values))) as unknown;
  const again = loadConfiguration({ flags, file: { file: "f", directory: "/", value, line: 1, warnings: [] } });
  assert.deepEqual(again.values, values);
});
