import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ContainerMount } from "../../../adapters/runtime/port.ts";
import { ConfigError } from "../../../model/config-error.ts";
import type { Contribution, MergedContribution } from "./contributor.ts";
import { mergeContributions } from "./merge.ts";

const mount = (containerPath: string): ContainerMount => ({
  containerPath,
  hostPath: "/host",
  readonly: false,
  propagation: "private",
});
const device = (containerPath: string) => ({ containerPath, hostPath: "/dev/x", permissions: "rw" });

/** What contributors `a`, `b` … make together. */
function merge(...all: readonly Contribution[]): MergedContribution {
  return mergeContributions(all.map((one, at) => [{ name: "ab"[at] ?? "c" }, one]));
}

test("contributions are put together in the order of the list", () => {
  const merged = merge(
    {
      env: [{ name: "A", value: "1" }],
      mounts: [mount("/a")],
      cdiDevices: ["v.com/gpu=0"],
      resources: { cpuShares: 2 },
    },
    {
      env: [{ name: "B", value: "2" }],
      mounts: [mount("/b")],
      devices: [device("/dev/b")],
      cdiDevices: ["v.com/gpu=1"],
      annotations: { key: "value" },
      resources: { cpusetCpus: "0-1" },
    },
  );
  assert.deepEqual(merged, {
    env: [
      { name: "A", value: "1" },
      { name: "B", value: "2" },
    ],
    mounts: [mount("/a"), mount("/b")],
    devices: [device("/dev/b")],
    cdiDevices: ["v.com/gpu=0", "v.com/gpu=1"],
    annotations: { key: "value" },
    resources: { cpuShares: 2, cpusetCpus: "0-1" },
  });
});

describe("two contributors that disagree are an error that names both", () => {
  const users = { hostId: 65_536, containerId: 0, length: 65_536 };
  const cases: { name: string; a: Contribution; b: Contribution; want: string }[] = [
    {
      name: "about a variable",
      a: { env: [{ name: "X", value: "1" }] },
      b: { env: [{ name: "X", value: "2" }] },
      want: "environment variable X",
    },
    { name: "about a mount", a: { mounts: [mount("/m")] }, b: { mounts: [mount("/m")] }, want: "mount /m" },
    {
      name: "about a mount, however it is written",
      a: { mounts: [mount("/m/n")] },
      b: { mounts: [mount("/m//n/")] },
      want: "mount /m/n",
    },
    { name: "about a device", a: { devices: [device("/d")] }, b: { devices: [device("/d")] }, want: "device /d" },
    {
      name: "about an annotation",
      a: { annotations: { key: "1" } },
      b: { annotations: { key: "2" } },
      want: "annotation key",
    },
    {
      name: "about a resource",
      a: { resources: { cpusetCpus: "0" } },
      b: { resources: { cpusetCpus: "1" } },
      want: "resource cpusetCpus",
    },
    {
      name: "about a file of the cgroup",
      a: { resources: { unified: { "memory.oom.group": "1" } } },
      b: { resources: { unified: { "memory.oom.group": "0" } } },
      want: "resource memory.oom.group",
    },
    { name: "about the user namespace", a: { users }, b: { users }, want: "user namespace" },
  ];
  for (const { name, a, b, want } of cases) {
    test(name, () => assert.throws(() => merge(a, b), new ConfigError(`${want}: set by both a and b`)));
  }
});

describe("two contributors that agree are no conflict", () => {
  test("about a variable, an annotation, a resource", () => {
    const same: Contribution = {
      env: [{ name: "X", value: "1" }],
      annotations: { key: "1" },
      resources: { cpusetCpus: "0", unified: { "memory.oom.group": "1" } },
    };
    assert.deepEqual(merge(same, same), merge(same));
  });

  test("about a CDI device, which is injected once", () => {
    assert.deepEqual(merge({ cdiDevices: ["v.com/gpu=0"] }, { cdiDevices: ["v.com/gpu=0"] }).cdiDevices, [
      "v.com/gpu=0",
    ]);
  });
});

test("the variables of the pod's author replace those of the node", () => {
  const merged = mergeContributions([
    [{ name: "devices" }, { env: [{ name: "X", value: "node" }] }],
    [{ name: "environment", overridesEnv: true }, { env: [{ name: "X", value: "author" }] }],
  ]);
  assert.deepEqual(merged.env, [{ name: "X", value: "author" }]);
});

test("the volumes of the pod's author replace mounts of the node at their paths", () => {
  const volume = { ...mount("/usr/lib/gpu/"), hostPath: "/author" };
  const merged = mergeContributions([
    [{ name: "devices" }, { mounts: [mount("/usr/lib/gpu"), mount("/other")] }],
    [{ name: "volumes", overridesMounts: true }, { mounts: [volume] }],
  ]);
  assert.deepEqual(merged.mounts, [mount("/other"), volume]);
});

test("one contributor may mount two volumes at one path: the API server's validation decides about that", () => {
  assert.equal(merge({ mounts: [mount("/m"), mount("/m")] }).mounts.length, 2);
});
