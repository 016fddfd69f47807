import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMISSION_NODE } from "../../../test/support/admission-node.ts";
import { pod } from "../../../test/support/pods.ts";
import type { Pod, Toleration } from "../../model/generated/types.ts";
import { admit } from "./admission.ts";

const node = ADMISSION_NODE;
const bestEffort = (tolerations: Toleration[] = []): Pod => pod("web").container("app").with({ tolerations }).build();
const burstable = pod("web")
  .container("app", { resources: { requests: { memory: "1Mi" } } })
  .build();
const tolerant = (key: string): Pod => bestEffort([{ key, operator: "Exists", effect: "NoSchedule" }]);

const cases: { name: string; pressure: string[]; pod: Pod; want?: string }[] = [
  { name: "no pressure", pressure: [], pod: bestEffort() },
  {
    name: "a best-effort pod under memory pressure",
    pressure: ["MemoryPressure"],
    pod: bestEffort(),
    want: "The node had condition: [MemoryPressure]. ",
  },
  { name: "a burstable pod under memory pressure", pressure: ["MemoryPressure"], pod: burstable },
  {
    name: "a best-effort pod that tolerates memory pressure",
    pressure: ["MemoryPressure"],
    pod: tolerant("node.kubernetes.io/memory-pressure"),
  },
  {
    name: "a toleration of another pressure does not help",
    pressure: ["MemoryPressure"],
    pod: tolerant("node.kubernetes.io/disk-pressure"),
    want: "The node had condition: [MemoryPressure]. ",
  },
  {
    name: "under disk pressure no toleration and no request helps",
    pressure: ["DiskPressure"],
    pod: burstable,
    want: "The node had condition: [DiskPressure]. ",
  },
  {
    name: "under two pressures the exceptions of memory do not count",
    pressure: ["MemoryPressure", "PIDPressure"],
    pod: tolerant("node.kubernetes.io/memory-pressure"),
    want: "The node had condition: [MemoryPressure PIDPressure]. ",
  },
  { name: "a static pod", pressure: ["DiskPressure"], pod: pod("web").container("app").fromFile().build() },
  {
    name: "a pod of a system priority",
    pressure: ["DiskPressure"],
    pod: pod("web").container("app").with({ priority: 2_000_000_000 }).build(),
  },
];
for (const { name, pressure, pod: of, want } of cases) {
  test(`pressure: ${name}`, () => {
    const outcome = admit(of, { others: [], node: { ...node, pressure } });
    const rejection = outcome.kind === "rejected" ? outcome.rejection : undefined;
    assert.deepEqual(rejection, want && { reason: "Evicted", message: want });
  });
}
