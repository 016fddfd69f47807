import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { layoutOf } from "./layout.ts";
import { ShimAudit } from "./orphaned-shims.ts";
import type { ProcessInfo } from "./processes.ts";

const { socket } = layoutOf({ stateDir: "/s" });

function shim(pid: number, { address = socket, namespace = "k8s.io", startTime = pid } = {}): ProcessInfo {
  const argv = ["/usr/bin/containerd-shim-runc-v2", "-namespace", namespace, "-id", `id-${pid}`, "-address", address];
  return { pid, parent: 1, startTime, argv };
}

const childOf = (parent: number): ProcessInfo => ({ pid: parent * 10, parent, startTime: 1, argv: ["/catatonit"] });

/** The pids that each call finds, given what lives then and which sandboxes the runtime has. */
function found(
  ...calls: { all: ProcessInfo[]; gone?: number[]; sandboxes?: string[]; contained?: number[] }[]
): number[][] {
  let now = calls[0];
  const directoryOf = (pid: number): string => `/s/run/task/${pid}${now?.gone?.includes(pid) ? " (deleted)" : ""}`;
  const isOnHost = (pid: number): boolean => now?.contained?.includes(pid) !== true;
  const audit = new ShimAudit(socket, { list: () => now?.all ?? [], directoryOf, isOnHost });
  return calls.map((call) => {
    now = call;
    return audit.find(call.sandboxes && new Set(call.sandboxes)).map(({ pid }) => pid);
  });
}

describe("a shim without a child", () => {
  test("is orphaned if its bundle was removed", () => {
    const all = [shim(1), shim(2), shim(3), shim(4, { address: "/other.sock" }), childOf(3)];
    assert.deepEqual(found({ all, gone: [2, 3, 4] }), [[2]]);
  });

  test("is orphaned if the runtime has no sandbox for it, twice in a row", () => {
    const all = [shim(1), shim(2), shim(3), childOf(3)];
    const call = { all, sandboxes: ["id-1"] };
    assert.deepEqual(found(call, call), [[], [2]]);
  });

  test("is as one whose container was created and never started", () => {
    const unstarted = (parent: number): ProcessInfo => ({ ...childOf(parent), argv: ["runc", "init"] });
    const all = [shim(1), unstarted(1), shim(2), unstarted(2), shim(3), unstarted(3), { ...childOf(3), pid: 31 }];
    const call = { all, sandboxes: ["id-1"] };
    assert.deepEqual(found(call, call), [[], [2]]);
    const other = { all: [shim(2), { ...childOf(2), argv: ["/bin/runc", "init", "more"] }], sandboxes: [] };
    assert.deepEqual(found(other, other), [[], []]);
  });

  test("is not orphaned while it is being started", () => {
    const all = [shim(1)];
    assert.deepEqual(found({ all, sandboxes: [] }, { all, sandboxes: ["id-1"] }, { all, sandboxes: [] }), [[], [], []]);
  });

  test("is not orphaned because another process had its pid", () => {
    const sandboxes: string[] = [];
    const calls = [
      { all: [shim(1)], sandboxes },
      { all: [shim(1, { startTime: 99 })], sandboxes },
    ];
    assert.deepEqual(found(...calls), [[], []]);
  });

  test("is no shim if it is a process of a container with such a command line", () => {
    const call = { all: [shim(1), shim(2)], gone: [1], sandboxes: [], contained: [1, 2] };
    assert.deepEqual(found(call, call), [[], []]);
  });

  test("is not orphaned while the sandboxes are unknown, nor in another namespace than that of CRI", () => {
    const unknown = { all: [shim(1)] };
    assert.deepEqual(found(unknown, unknown), [[], []]);
    const foreign = { all: [shim(1, { namespace: "moby" })], sandboxes: [] };
    assert.deepEqual(found(foreign, foreign), [[], []]);
  });
});
