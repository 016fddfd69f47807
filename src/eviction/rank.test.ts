import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Pod } from "../model/generated/types.ts";
import { type PodConsumption, rankPods } from "./rank.ts";
import type { Layout, Signal } from "./signals.ts";

const MI = 2 ** 20;
const [LOW, HIGH] = [1, 2];

interface Given {
  readonly name: string;
  readonly priority?: number;
  readonly request?: string;
  /** Of the pod's runtime class. */
  readonly overhead?: string;
  /** Mi of memory, or numbers of the other resources; absent if it was not measured. */
  readonly memory?: number;
  readonly tasks?: number;
  readonly logs?: number;
  readonly layer?: number;
  readonly volumes?: number;
  /** Deleted and still open: on the node's filesystem, and in layers. */
  readonly deleted?: readonly [node: number, layers: number];
  readonly isStatic?: boolean;
}

function build(given: Given, resource: string): { pod: Pod; consumption: PodConsumption } {
  const { name, priority = 0, request, overhead } = given;
  const requests = request === undefined ? {} : { requests: { [resource]: request } };
  const annotations: Readonly<Record<string, string>> =
    given.isStatic === true ? { "kubernetes.io/config.source": "file" } : {};
  const disk = (mebi: number | undefined) => ({ bytes: (mebi ?? 0) * MI, inodes: mebi ?? 0 });
  return {
    pod: {
      metadata: { name, uid: name, annotations },
      spec: {
        priority,
        containers: [{ name: "c", image: "i", resources: requests }],
        ...(overhead !== undefined && { overhead: { [resource]: overhead } }),
      },
    },
    consumption: {
      memory: given.memory === undefined ? undefined : given.memory * MI,
      tasks: given.tasks,
      containers: [{ name: "c", logs: disk(given.logs), layer: disk(given.layer) }],
      volumes: disk(given.volumes),
      ...(given.deleted && { deleted: { node: disk(given.deleted[0]), layers: disk(given.deleted[1]) } }),
    },
  };
}

function rank(signal: Signal, given: readonly Given[], layout: Layout = "single") {
  const built = given.map((one) => build(one, signal === "memory.available" ? "memory" : "ephemeral-storage"));
  const consumption = new Map(built.map(({ pod, consumption: of }) => [pod.metadata.uid ?? "", of]));
  return rankPods(
    signal,
    built.map(({ pod }) => pod),
    { consumption, layout },
  );
}

/** The table of Kubernetes' own tests, in the order of eviction. */
const MEMORY: readonly Given[] = [
  { name: "above its request, low priority, high usage", priority: LOW, memory: 500 },
  { name: "above its request, low priority, low usage", priority: LOW, memory: 50 },
  { name: "above its request, high priority, high usage", priority: HIGH, request: "100Mi", memory: 600 },
  { name: "above its request, high priority, low usage", priority: HIGH, request: "100Mi", memory: 150 },
  { name: "below its request, low priority, high usage", priority: LOW, request: "1Gi", memory: 800 },
  { name: "below its request, low priority, low usage", priority: LOW, request: "1Gi", memory: 200 },
  { name: "below its request, high priority, high usage", priority: HIGH, request: "1Gi", memory: 800 },
  { name: "below its request, high priority, low usage", priority: HIGH, request: "1Gi", memory: 200 },
];

const cases: { name: string; signal: Signal; layout?: Layout; order: readonly Given[] }[] = [
  { name: "memory", signal: "memory.available", order: MEMORY },
  {
    name: "disk: everything counts on one filesystem",
    signal: "nodefs.available",
    order: [
      { name: "layer", layer: 90, logs: 20 },
      { name: "volumes", volumes: 100 },
      { name: "logs", logs: 50 },
      { name: "within its request", request: "1Gi", volumes: 200 },
    ],
  },
  {
    name: "disk: the node's own filesystem has logs and volumes",
    signal: "nodefs.available",
    layout: "dedicated",
    order: [
      { name: "volumes", volumes: 30 },
      { name: "logs", logs: 20, layer: 900 },
    ],
  },
  {
    name: "disk: what was deleted and is still open counts",
    signal: "nodefs.available",
    order: [
      { name: "in both", deleted: [60, 60], volumes: 1 },
      { name: "volumes", volumes: 100 },
    ],
  },
  {
    name: "inodes: what was deleted and is still open counts",
    signal: "nodefs.inodesFree",
    order: [
      { name: "deleted", deleted: [60, 60] },
      { name: "volumes", volumes: 100 },
    ],
  },
  {
    name: "disk: what was deleted counts on its own filesystem",
    signal: "nodefs.available",
    layout: "dedicated",
    order: [
      { name: "on the node's", deleted: [50, 0] },
      { name: "in layers", deleted: [1, 900] },
    ],
  },
  {
    name: "disk: what was deleted in layers counts on the filesystem of images",
    signal: "imagefs.available",
    layout: "dedicated",
    order: [
      { name: "in layers", deleted: [0, 50] },
      { name: "on the node's", deleted: [900, 1] },
    ],
  },
  {
    name: "disk: the filesystem of images has the writable layers",
    signal: "imagefs.available",
    layout: "dedicated",
    order: [
      { name: "layer", layer: 30 },
      { name: "logs", logs: 20, volumes: 900, layer: 1 },
    ],
  },
  {
    name: "disk: with only images elsewhere, layers count for the node's own filesystem",
    signal: "nodefs.available",
    layout: "split",
    order: [
      { name: "layer", layer: 30 },
      { name: "logs", logs: 20 },
    ],
  },
  {
    name: "inodes: their number, not bytes, and no request counts",
    signal: "nodefs.inodesFree",
    order: [
      { name: "many", request: "10Gi", volumes: 100 },
      { name: "few", volumes: 10 },
    ],
  },
  {
    name: "processes: priority, then their number",
    signal: "pid.available",
    order: [
      { name: "low priority, many", priority: LOW, tasks: 20 },
      { name: "low priority, few", priority: LOW, tasks: 5 },
      { name: "high priority, very many", priority: HIGH, tasks: 500 },
    ],
  },
  {
    name: "memory: by how much more than its request, not by how much; what is requested is not too much",
    signal: "memory.available",
    order: [
      { name: "8 Mi more", request: "1Mi", memory: 9 },
      { name: "2 Mi more", request: "8Mi", memory: 10 },
      { name: "as much as its request", priority: LOW - 5, request: "50Mi", memory: 50 },
    ],
  },
  {
    name: "processes: what was not measured goes first, of the same priority",
    signal: "pid.available",
    order: [
      { name: "low priority, not measured", priority: LOW },
      { name: "low priority", priority: LOW, tasks: 20 },
      { name: "high priority, not measured", priority: HIGH },
      { name: "high priority", priority: HIGH, tasks: 20 },
    ],
  },
  {
    name: "of what was not measured the lower priority goes first",
    signal: "memory.available",
    order: [
      { name: "not measured, low priority", priority: LOW },
      { name: "not measured, high priority", priority: HIGH, request: "1Gi" },
      { name: "measured", priority: LOW, memory: 500 },
    ],
  },
  {
    name: "memory: overhead counts for a pod that requests some, and not for one that requests none",
    signal: "memory.available",
    order: [
      { name: "no request", priority: HIGH, overhead: "100Mi", memory: 50 },
      { name: "above request and overhead", priority: HIGH, request: "10Mi", overhead: "10Mi", memory: 25 },
      { name: "above its request alone", priority: LOW, request: "10Mi", overhead: "100Mi", memory: 50 },
    ],
  },
  {
    name: "what was not measured goes first",
    signal: "memory.available",
    order: [
      { name: "not measured", priority: HIGH },
      { name: "measured", priority: LOW, memory: 500 },
    ],
  },
];

describe("ranking", () => {
  for (const { name, signal, layout, order } of cases) {
    test(name, () => {
      const names = order.map((one) => one.name);
      for (const given of [order, order.toReversed()]) {
        assert.deepEqual(
          rank(signal, given, layout).map(({ pod }) => pod.metadata.name),
          names,
        );
      }
    });
  }

  test("each place has its numbers, and critical pods are marked", () => {
    const [first, second] = rank("memory.available", [
      { name: "web", request: "100Mi", memory: 150, priority: 7 },
      { name: "static", request: "1Gi", memory: 1, isStatic: true },
    ]);
    const { pod: _pod, ...numbers } = first ?? {};
    assert.deepEqual(numbers, {
      priority: 7,
      usage: 150 * MI,
      request: 100 * MI,
      exceedsRequest: true,
      isCritical: false,
    });
    assert.equal(second?.isCritical, true);
  });
});
