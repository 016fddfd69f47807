import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutOf } from "./layout.ts";
import { isOnHost, listProcesses, ownProcesses, type ProcessInfo, readProcess } from "./processes.ts";

const layout = layoutOf({ stateDir: "/s" });
const proc = (pid: number, parent: number, ...argv: string[]): ProcessInfo => ({ pid, parent, startTime: 1, argv });
const shim = (pid: number, socket: string): ProcessInfo =>
  proc(pid, 1, "/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "x", "-address", socket);

test("only what was started with our configuration or reports to our socket is ours", () => {
  const all = [
    proc(1, 0, "/sbin/init"),
    proc(10, 1, "/usr/bin/containerd", "--config", "/s/containerd.toml"),
    proc(11, 1, "/usr/bin/containerd"),
    proc(13, 1, "/bin/sh", "-c", "…", "sh", "/cg", "--", "/usr/bin/containerd", "--config", "/s/containerd.toml"),
    proc(14, 1, "/bin/sh", "-c", "cat", "--config", "/s/containerd.toml"),
    proc(12, 1, "vi", "--config", "/s/containerd.toml", "x"),
    shim(20, "/s/run/containerd.sock"),
    proc(21, 20, "/catatonit", "-P"),
    proc(22, 20, "/bin/sh"),
    proc(23, 22, "sleep", "5"),
    proc(24, 22, "/evil", "--config", "/s/containerd.toml"),
    shim(30, "/run/containerd/containerd.sock"),
    proc(31, 30, "/pause"),
    proc(40, 1, "grep", "-address", "/s/run/containerd.sock"),
  ];
  const own = ownProcesses(all, layout);
  const pids = (of: readonly ProcessInfo[]): number[] => of.map(({ pid }) => pid).toSorted((a, b) => a - b);
  assert.deepEqual(pids(own.containerd), [10, 13]);
  assert.deepEqual(pids(own.shims), [20]);
  assert.deepEqual(pids(own.inits), [21, 22]);
  assert.deepEqual(pids(own.workload), [21, 22, 23, 24], "a container may have the command line of the daemon");
});

test("a process is of the host if it shares user and PID namespace", () => {
  assert.deepEqual([isOnHost(process.pid), isOnHost(2 ** 30)], [true, false]);
});

test("this process is found with its own start time, pid 0 is not", () => {
  const self = readProcess(process.pid);
  assert.ok(self);
  assert.equal(self.parent, process.ppid);
  assert.equal(listProcesses().find(({ pid }) => pid === process.pid)?.startTime, self.startTime);
  assert.equal(readProcess(0), undefined);
});
