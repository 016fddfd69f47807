import assert from "node:assert/strict";
import { test } from "node:test";
import { abandonedShims } from "./abandoned-shims.ts";
import { layoutOf } from "./layout.ts";
import type { ProcessInfo } from "./processes.ts";

const layout = layoutOf({ stateDir: "/s" });

function shim(pid: number, socket = layout.socket): ProcessInfo {
  const argv = ["/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", `id-${pid}`, "-address", socket];
  return { pid, parent: 1, startTime: pid, argv };
}

test("only a shim of ours without a bundle and without a child is abandoned", () => {
  const child: ProcessInfo = { pid: 30, parent: 3, startTime: 30, argv: ["/catatonit"] };
  const all = [shim(1), shim(2), shim(3), shim(4, "/other.sock"), child];
  const gone = new Set([2, 3, 4]);
  const directoryOf = (pid: number): string => `/s/run/task/${pid}${gone.has(pid) ? " (deleted)" : ""}`;
  assert.deepEqual(
    abandonedShims(all, layout, directoryOf).map(({ pid }) => pid),
    [2],
  );
});
