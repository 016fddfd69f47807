import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { Demand } from "./demand.ts";

function of(more: Record<string, string> = {}): Pick<Container, "resources"> {
  const limits = { cpu: "2", memory: "1Gi", ...more };
  return { resources: { limits, requests: limits } };
}

describe("the memory of a pod", () => {
  test("has no kind that only initialization needs, as in Kubernetes", () => {
    const web = pod("web")
      .init("setup", of({ memory: "2Gi", "hugepages-2Mi": "64Mi" }))
      .container("app", of())
      .build();
    assert.deepEqual([...new Demand({ managesPodLevel: false }).podMemory(web)], [["memory", 2 * 2 ** 30]]);
  });
});

describe("a pod with pod-level resources", () => {
  const demand = new Demand({ managesPodLevel: true });
  const level = (amounts: Record<string, string>, container: Pick<Container, "resources">): Pod =>
    pod("level")
      .container("app", container)
      .with({ resources: of(amounts).resources })
      .build();

  test("does not have kinds of memory of which it asks for nothing", () => {
    const web = level({ "hugepages-2Mi": "0" }, {});
    assert.deepEqual([...demand.podMemory(web)], [["memory", 2 ** 30]]);
  });

  test("has a container that shares if it asks for nothing of a resource", () => {
    const [app = { name: "" }, web] = ((built: Pod) => [built.spec.containers[0], built] as const)(
      level({}, of({ memory: "0" })),
    );
    assert.deepEqual([demand.cpus(web, app), [...demand.memory(web, app)]], [0, []]);
  });
});
