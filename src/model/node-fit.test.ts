import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { Pod } from "./generated/types.ts";
import { requestsOf, shortagesOf } from "./node-fit.ts";

function asking(name: string, requests: Record<string, string>): Pod {
  return pod(name).container("app", { resources: { requests } }).build();
}

/** The pod, and how often its containers were looked at. */
function watched(name: string, requests: Record<string, string>) {
  const { metadata, spec } = asking(name, requests);
  const seen = { reads: 0 };
  const counted = new Proxy(spec, {
    get: (of, key, receiver) => {
      if (key === "containers") seen.reads++;
      return Reflect.get(of, key, receiver) as unknown;
    },
  });
  return { pod: { metadata, spec: counted }, seen };
}

describe("what a node is short of", () => {
  const allocatable = { cpu: "4", memory: "8Gi", pods: "3", "hugepages-2Mi": "0", "example.com/card": "2" };

  test("is in the order of Kubernetes, with what others have", () => {
    const others = [
      asking("a", { cpu: "3", "hugepages-2Mi": "2Mi", "example.com/card": "1" }),
      asking("b", { cpu: "500m", "example.com/other": "9" }),
      asking("c", { memory: "1Gi" }),
    ];
    const web = asking("web", { "hugepages-2Mi": "4Mi", "example.com/card": "1", "example.com/none": "1", cpu: "1" });
    assert.deepEqual(shortagesOf(web, { allocatable, others }), [
      { resource: "pods", requested: 1, used: 3, capacity: 3 },
      { resource: "cpu", requested: 1000, used: 3500, capacity: 4000 },
      { resource: "hugepages-2Mi", requested: 4 * 2 ** 20, used: 2 * 2 ** 20, capacity: 0 },
    ]);
  });

  test("counts resources by names that every object inherits", () => {
    const named = { constructor: "1", toString: "1" };
    const room = { allocatable: { ...allocatable, ...named }, others: [asking("a", { constructor: "1" })] };
    assert.deepEqual(
      shortagesOf(asking("web", named), room).map(({ resource, used }) => [resource, used]),
      [["constructor", 1]],
    );
  });

  test("asks a pod for its requests once, however many resources are compared, and however often", () => {
    const sizes = Array.from({ length: 50 }, (_, at) => `hugepages-${at + 1}Mi`);
    const web = asking("web", Object.fromEntries(sizes.map((size) => [size, "1Gi"])));
    const none = Object.fromEntries(sizes.map((size) => [size, "0"]));
    const { pod: other, seen } = watched("other", { cpu: "1", [sizes[7] ?? ""]: "1Mi" });
    for (const room of [none, { ...none, cpu: "4" }]) {
      const found = shortagesOf(web, { allocatable: room, others: [other] });
      assert.deepEqual([found.length, found[7]?.used, found[8]?.used], [50, 2 ** 20, 0]);
    }
    assert.equal(seen.reads, 1);
  });
});

test("requests are plain numbers, and those of another spec are other ones", () => {
  const small = asking("web", { cpu: "500m", memory: "1Ki" });
  assert.deepEqual(requestsOf(small), { cpu: 500, memory: 1024, pods: 1 });
  assert.deepEqual(requestsOf({ ...small, spec: asking("web", { cpu: "1" }).spec }), { cpu: 1000, pods: 1 });
});
