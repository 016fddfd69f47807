import assert from "node:assert/strict";
import { test } from "node:test";
import { parseKernelRecord } from "./kernel-log.ts";

const rows: [string, object | undefined][] = [
  [
    "6,339,5140900,-;NET: Registered protocol",
    { sequence: 339, bootMicros: 5140900, isKernel: true, text: "NET: Registered protocol" },
  ],
  [
    "30,340,5690716,-;udevd[80]: starting",
    { sequence: 340, bootMicros: 5690716, isKernel: false, text: "udevd[80]: starting" },
  ],
  [
    "7,160,424069,-,caller=T1;pci; root\n SUBSYSTEM=acpi\n",
    { sequence: 160, bootMicros: 424069, isKernel: true, text: "pci; root" },
  ],
  [
    "8,341,5690717,-;oom-kill:constraint=X",
    { sequence: 341, bootMicros: 5690717, isKernel: false, text: "oom-kill:constraint=X" },
  ],
  ["nonsense", undefined],
  ["", undefined],
];
for (const [raw, want] of rows) {
  test(`the record ${JSON.stringify(raw)} ${want === undefined ? "is none" : "is read"}`, () => {
    assert.deepEqual(parseKernelRecord(raw), want);
  });
}
