import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Pod } from "../model/generated/types.ts";
import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import { exceededLimit, hasStorageLimit } from "./local-limits.ts";
import { evictionText } from "./message.ts";
import type { PodConsumption } from "./rank.ts";
import type { Observation, Signal } from "./signals.ts";
import { thresholdsOf } from "./thresholds.ts";

const MI = 2 ** 20;

function text(
  signal: Signal,
  { pod, consumption, available }: { pod: Pod; consumption?: PodConsumption; available: number },
) {
  const starved = thresholdsOf({
    evictionHard: { [signal]: signal.endsWith("inodesFree") ? "1000" : "1Gi" },
    evictionSoft: {},
    evictionSoftGracePeriod: {},
    evictionMinimumReclaim: {},
    enforceNodeAllocatable: [],
  });
  const observed: Observation = { available, capacity: 2 ** 34, at: { wall: 0, mono: 0 } };
  return evictionText(pod, consumption, { starved, observations: new Map([[signal, observed]]) });
}

function withRequests(requests: Readonly<Record<string, string>>, more: Partial<Pod["spec"]> = {}): Pod {
  const container = (name: string) => ({ name, image: "i", resources: { requests: { ...requests } } });
  return {
    metadata: { name: "web" },
    spec: { containers: [container("big"), container("small")], initContainers: [container("sidecar")], ...more },
  };
}

describe("the message of an eviction", () => {
  const consumption: PodConsumption = {
    memory: 300 * MI,
    containers: [
      { name: "big", memory: 200 * MI, logs: { bytes: 50 * MI, inodes: 1 }, layer: { bytes: MI + 1, inodes: 1 } },
      { name: "small", memory: 100 * MI },
      { name: "sidecar", memory: 101 * MI },
      { name: "debugger", memory: 999 * MI },
    ],
    volumes: { bytes: 0, inodes: 0 },
  };

  test("memory: the threshold, what was available, and each container above its request", () => {
    const { message, annotations } = text("memory.available", {
      pod: withRequests({ memory: "100Mi" }),
      consumption,
      available: 500 * MI,
    });
    assert.equal(
      message,
      "The node was low on resource: memory. Threshold quantity: 1Gi, available: 500Mi. " +
        "Container big was using 200Mi, request is 100Mi, has larger consumption of memory. " +
        "Container sidecar was using 101Mi, request is 100Mi, has larger consumption of memory. ",
    );
    assert.deepEqual(annotations, {
      offending_containers: "big,sidecar",
      offending_containers_usage: "200Mi,101Mi",
      starved_resource: "memory",
    });
  });

  test("disk: logs and writable layer together, only where both were measured", () => {
    const { message } = text("nodefs.available", { pod: withRequests({}), consumption, available: 5 });
    assert.equal(
      message,
      "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 5. " +
        "Container big was using 53477377, request is 0, has larger consumption of ephemeral-storage. ",
    );
  });

  test("inodes: no container is named", () => {
    const { message, annotations } = text("nodefs.inodesFree", { pod: withRequests({}), consumption, available: 5 });
    assert.equal(message, "The node was low on resource: inodes. Threshold quantity: 1k, available: 5. ");
    assert.equal(annotations["starved_resource"], "inodes");
  });

  test("a pod with a request of its own is named as a whole", () => {
    const pod = withRequests({ memory: "1Gi" }, { resources: { requests: { memory: "100Mi" } } });
    const { message, annotations } = text("memory.available", { pod, consumption, available: 0 });
    assert.match(message, /Pod web was using 300Mi, request is 100Mi, has larger consumption of memory\. $/);
    assert.deepEqual([annotations["offending_pod"], annotations["offending_pod_usage"]], ["web", "300Mi"]);
  });

  test("a threshold without a measurement is not named, and a layer that was not measured is no container above its request", () => {
    const starved = thresholdsOf({
      evictionHard: { "nodefs.available": "1Gi" },
      evictionSoft: {},
      evictionSoftGracePeriod: {},
      evictionMinimumReclaim: {},
      enforceNodeAllocatable: [],
    });
    const logs = { bytes: 500 * MI, inodes: 1 };
    const partly = { containers: [{ name: "big", logs }], volumes: { bytes: 0, inodes: 0 } };
    const { message } = evictionText(withRequests({}), partly, { starved, observations: new Map() });
    assert.equal(message, "The node was low on resource: ephemeral-storage. ");
  });

  test("a pod that was not measured has no annotations", () => {
    const { message, annotations } = text("memory.available", { pod: withRequests({}), available: MI });
    assert.equal(message, "The node was low on resource: memory. Threshold quantity: 1Gi, available: 1Mi. ");
    assert.deepEqual(annotations, {});
  });
});

describe("limits on local storage", () => {
  const part = (kind: StoragePart["kind"], name: string, mebi: number): StoragePart => ({
    kind,
    name,
    isMemory: false,
    usage: { bytes: mebi * MI, inodes: 1, at: 0, by: "walk" },
  });
  const storage = (...parts: StoragePart[]): PodStorage => ({
    parts,
    bytes: parts.reduce((sum, { usage }) => sum + (usage?.bytes ?? 0), 0),
    inodes: 0,
    isFresh: true,
  });
  const pod = (sizeLimit: string | undefined, limit: string | undefined): Pod => ({
    metadata: {},
    spec: {
      containers: [
        { name: "main", image: "i", ...(limit && { resources: { limits: { "ephemeral-storage": limit } } }) },
        { name: "other", image: "i" },
      ],
      volumes: [{ name: "data", emptyDir: sizeLimit === undefined ? {} : { sizeLimit } }],
    },
  });
  const cases: { name: string; pod: Pod; storage: PodStorage; layout?: "dedicated"; want: string | undefined }[] = [
    {
      name: "no limits",
      pod: pod(undefined, undefined),
      storage: storage(part("emptyDir", "data", 500)),
      want: undefined,
    },
    {
      name: "a size limit of 0 is none",
      pod: pod("0", undefined),
      storage: storage(part("emptyDir", "data", 5)),
      want: undefined,
    },
    {
      name: "exactly the limit",
      pod: pod("10Mi", undefined),
      storage: storage(part("emptyDir", "data", 10)),
      want: undefined,
    },
    {
      name: "a volume above its limit",
      pod: pod("10Mi", undefined),
      storage: storage(part("emptyDir", "data", 11)),
      want: 'emptydirfs.limit: Usage of EmptyDir volume "data" exceeds the limit "10Mi". ',
    },
    {
      name: "all together above the limits of the containers",
      pod: pod(undefined, "20Mi"),
      storage: storage(part("emptyDir", "data", 15), part("log", "other", 6)),
      want: "ephemeralpodfs.limit: Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. ",
    },
    {
      name: "exactly the limit of the pod",
      pod: pod(undefined, "20Mi"),
      storage: storage(part("emptyDir", "data", 20)),
      want: undefined,
    },
    {
      name: "exactly the limit of a container",
      pod: pod(undefined, "20Mi"),
      storage: storage(part("log", "main", 20)),
      want: undefined,
    },
    {
      name: "a volume of the name of a container, and a container of the name of a volume, are other things",
      pod: pod("10Mi", undefined),
      storage: storage(part("log", "data", 500), part("emptyDir", "main", 500), part("emptyDir", "data", 1)),
      want: undefined,
    },
    {
      name: "the layer of a terminated container does not count",
      pod: pod(undefined, "20Mi"),
      storage: { ...storage({ ...part("layer", "main", 30), isOld: true }), bytes: 0 },
      want: undefined,
    },
    {
      name: "what was not measured yet counts as nothing",
      pod: pod("10Mi", "20Mi"),
      storage: storage({ kind: "emptyDir", name: "data", isMemory: false }),
      want: undefined,
    },
  ];
  for (const c of cases) {
    test(c.name, () => {
      const found = exceededLimit(c.pod, c.storage, { layout: c.layout ?? "single" });
      assert.equal(found && `${found.signal}: ${found.message}`, c.want);
    });
  }

  test("a container above its own limit; its layer counts unless it is on a filesystem of its own", () => {
    const limits = (limit: string) => ({ resources: { limits: { "ephemeral-storage": limit } } });
    const two: Pod = {
      metadata: {},
      spec: {
        containers: [
          { name: "main", image: "i", ...limits("10Mi") },
          { name: "other", image: "i", ...limits("1Gi") },
        ],
      },
    };
    const measured = storage(part("log", "main", 6), part("layer", "main", 6));
    const found = exceededLimit(two, measured, { layout: "single" });
    assert.equal(found?.signal, "ephemeralcontainerfs.limit");
    assert.equal(found?.message, 'Container main exceeded its local ephemeral storage limit "10Mi". ');
    assert.equal(exceededLimit(two, measured, { layout: "dedicated" }), undefined);
    const others = storage(part("log", "other", 500), part("emptyDir", "main", 500));
    assert.equal(exceededLimit(two, others, { layout: "single" }), undefined);
    const none: Pod = { metadata: {}, spec: { containers: [{ name: "main", image: "i", ...limits("0") }] } };
    assert.equal(exceededLimit(none, { ...measured, bytes: 0 }, { layout: "single" }), undefined, "0 is no limit");
  });

  test("only pods with a limit are measured", () => {
    const all = [pod(undefined, undefined), pod("0", undefined), pod("1Mi", undefined), pod(undefined, "1Mi")];
    assert.deepEqual(all.map(hasStorageLimit), [false, false, true, true]);
    const { spec } = pod("1Mi", undefined);
    const volumes = [...(spec.volumes ?? []), { name: "other", emptyDir: {} }];
    assert.equal(hasStorageLimit({ metadata: {}, spec: { ...spec, volumes } }), true);
    assert.equal(hasStorageLimit({ metadata: {}, spec: { containers: spec.containers } }), false);
    const resources = { limits: { "ephemeral-storage": "1Mi" } };
    assert.equal(hasStorageLimit({ metadata: {}, spec: { containers: [], resources } }), true);
    const initContainers = [{ name: "setup", resources }];
    assert.equal(hasStorageLimit({ metadata: {}, spec: { containers: [], initContainers } }), true);
  });

  test("of a pod that is not measured no limits are added up", () => {
    let reads = 0;
    const cards = Array.from({ length: 100 }, (_, at) => [`example.com/card${at}`, "1"] as const);
    const limits = new Proxy(Object.fromEntries(cards), {
      ownKeys: (of) => {
        reads++;
        return Reflect.ownKeys(of);
      },
    });
    const containers = [{ name: "main", resources: { limits } }];
    assert.deepEqual([hasStorageLimit({ metadata: {}, spec: { containers } }), reads], [false, 0]);
  });
});
