import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { ConfigError } from "./config-error.ts";
import type { ResourceFieldSelector } from "./generated/types.ts";
import { resourceFieldValue } from "./resource-field.ts";

const of = pod("web")
  .container("app", {
    resources: {
      limits: { cpu: "1500m", memory: "100Mi", "hugepages-2Mi": "4Mi" },
      requests: { cpu: "250m", memory: "64Mi", "ephemeral-storage": "1Gi" },
    },
  })
  .container("free")
  .container("zero", { resources: { limits: { cpu: "0" } } })
  .init("setup", { resources: { limits: { cpu: "3" } } })
  .build();
const allocatable = { cpu: "3900m", memory: "7Gi" };

function value(ref: ResourceFieldSelector, of_ = of): string {
  const container = of_.spec.containers[0] ?? { name: "" };
  return resourceFieldValue(of_, ref, { container, allocatable });
}

describe("a resource as a variable", () => {
  const cases: [string, ResourceFieldSelector, string][] = [
    ["cores are rounded up", { resource: "limits.cpu" }, "2"],
    ["in the unit of the divisor", { resource: "limits.cpu", divisor: "1m" }, "1500"],
    ["rounded up in that unit", { resource: "limits.cpu", divisor: "400m" }, "4"],
    ["a request", { resource: "requests.cpu", divisor: "1m" }, "250"],
    ["bytes", { resource: "limits.memory" }, String(100 * 2 ** 20)],
    ["Mi", { resource: "limits.memory", divisor: "1Mi" }, "100"],
    ["an M is less than a Mi, so there are more", { resource: "limits.memory", divisor: "1M" }, "105"],
    ["disk", { resource: "requests.ephemeral-storage", divisor: "1Gi" }, "1"],
    ["huge pages", { resource: "limits.hugepages-2Mi", divisor: "1Mi" }, "4"],
    ["a divisor of 0 is none", { resource: "requests.cpu", divisor: "0" }, "1"],
    ["however it is written", { resource: "requests.cpu", divisor: "0m" }, "1"],
    ["of another container", { resource: "limits.cpu", containerName: "setup" }, "3"],
    [
      "no limit means all that the node gives",
      { resource: "limits.cpu", containerName: "free", divisor: "1m" },
      "3900",
    ],
    ["a limit of 0 is none", { resource: "limits.cpu", containerName: "zero", divisor: "1m" }, "3900"],
    ["no request is 0", { resource: "requests.memory", containerName: "free" }, "0"],
    ["nobody knows it: 0", { resource: "limits.ephemeral-storage", containerName: "free" }, "0"],
  ];
  for (const [name, ref, want] of cases) test(name, () => assert.equal(value(ref), want));

  test("no limit of its own means the pod's, if it has one", () => {
    const limited = pod("web")
      .container("app")
      .with({ resources: { limits: { memory: "1Gi" } } })
      .build();
    assert.equal(value({ resource: "limits.memory", divisor: "1Mi" }, limited), "1024");
    assert.equal(value({ resource: "requests.memory", divisor: "1Mi" }, limited), "0");
  });

  const refused: [string, ResourceFieldSelector][] = [
    ["a resource that is not known", { resource: "limits.gpu" }],
    ["neither limit nor request", { resource: "usage.cpu" }],
    ["a container that the pod does not have", { resource: "limits.cpu", containerName: "other" }],
    ["a divisor below 0", { resource: "limits.cpu", divisor: "-1" }],
  ];
  for (const [name, ref] of refused) test(`${name} is refused`, () => assert.throws(() => value(ref), ConfigError));
});
