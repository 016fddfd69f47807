import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { FakeClock, SystemClock } from "../../lib/clock.ts";
import { cgroupMountsIn, removeCgroup } from "./cgroups.ts";
import { HostError, type HostErrorCode, hostError } from "./host-error.ts";
import { LinuxHost } from "./index.ts";
import { lockHolder, takeLock } from "./lock.ts";
import { countCores, defaultInterface, parseMemory, parseOsRelease } from "./machine.ts";
import { mountsNear, mountsWithin, otherMountsOf, parseMountTable } from "./mount-table.ts";
import { parseStat } from "./processes.ts";
import { SystemCalls } from "./system-calls.ts";

const clock = new SystemClock();
const host = new LinuxHost({ clock });
const codeIs = (code: HostErrorCode) => (error: unknown) => error instanceof HostError && error.code === code;

function directoryFor(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "host-"));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

const MOUNTS = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 0:26 / /mnt/a\\040b\\012c\\134 ro,nosuid,nodev shared:2 master:1 - tmpfs tmp\\040fs rw,size=4k
31 22 8:1 /srv/data /var/lib/pods/x rw - ext4 /dev/vda rw
40 22 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
41 22 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/lib/agent,name=systemd
42 22 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
not a mount
`;

test("the mount table is read with its escapes, optional fields and bind roots", () => {
  const table = parseMountTable(MOUNTS);
  assert.equal(table.length, 6);
  assert.deepEqual(table[1], {
    id: 30,
    device: "0:26",
    root: "/",
    target: "/mnt/a b\nc\\",
    options: ["ro", "nosuid", "nodev"],
    type: "tmpfs",
    source: "tmp fs",
    superOptions: ["rw", "size=4k"],
    isShared: table[1]?.isShared,
  });
  assert.equal(table[2]?.root, "/srv/data");
});

test("mounts within a path are those at it and below it, not those beside it", () => {
  const within = (path: string): string[] => mountsWithin(parseMountTable(MOUNTS), path).map(({ target }) => target);
  assert.deepEqual(within("/var/lib/pods"), ["/var/lib/pods/x"]);
  assert.deepEqual(within("/var/lib/pods/x"), ["/var/lib/pods/x"]);
  assert.deepEqual(within("/var/lib/pod"), []);
  assert.equal(within("/").length, 6);
});

test("other mounts of a filesystem are those of the same device at or below the same root", () => {
  const mount = (device: string, root: string, target: string): string =>
    `9 1 ${device} ${root} ${target} rw - ext4 /dev/x rw`;
  const table = parseMountTable(
    [
      mount("8:1", "/", "/"),
      mount("8:16", "/", "/stage"),
      mount("8:16", "/", "/pods/a/v"),
      mount("8:16", "/sub", "/pods/a/subpath"),
      mount("8:17", "/", "/pods/b/v"),
      mount("8:1", "/srv/x", "/bound"),
      mount("8:1", "/srv/x/y", "/pods/c/v"),
      mount("8:1", "/srv/xy", "/pods/d/v"),
    ].join("\n"),
  );
  assert.deepEqual(otherMountsOf(table, "/stage"), ["/pods/a/v", "/pods/a/subpath"]);
  assert.deepEqual(otherMountsOf(table, "/bound"), ["/pods/c/v"]);
  assert.deepEqual(otherMountsOf(table, "/stage", { isWhole: true }), ["/pods/a/v"]);
  assert.deepEqual(otherMountsOf(table, "/pods/a/subpath", { isAny: true }), ["/stage", "/pods/a/v"]);
  assert.deepEqual(otherMountsOf(table, "/nothing"), []);
});

test("cgroup hierarchies of both versions, controllers without the other options", () => {
  assert.deepEqual(cgroupMountsIn(parseMountTable(MOUNTS)), [
    { version: 1, mountpoint: "/sys/fs/cgroup/cpu,cpuacct", controllers: ["cpu", "cpuacct"] },
    { version: 1, mountpoint: "/sys/fs/cgroup/systemd", controllers: ["name=systemd"] },
    { version: 2, mountpoint: "/sys/fs/cgroup/unified", controllers: [] },
  ]);
});

test("a cgroup hierarchy that an outer namespace mounted is not used", () => {
  const outer =
    "50 22 0:33 /../.. /mnt/huge rw - cgroup cgroup rw,hugetlb\n51 22 0:32 /.. /mnt/all rw - cgroup2 cgroup2 rw";
  const own = "52 22 0:33 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb";
  const named = "53 22 0:34 /..a /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids";
  assert.deepEqual(cgroupMountsIn(parseMountTable([outer, own, named].join("\n"))), [
    { version: 1, mountpoint: "/sys/fs/cgroup/hugetlb", controllers: ["hugetlb"] },
    { version: 1, mountpoint: "/sys/fs/cgroup/pids", controllers: ["pids"] },
  ]);
});

test("a cgroup is removed from all hierarchies with its children; a missing one is success", async (t) => {
  const root = directoryFor(t);
  const mounts = ["cpu", "memory", "pids"].map((name) => ({
    version: 1 as const,
    mountpoint: join(root, name),
    controllers: [name],
  }));
  mkdirSync(join(root, "cpu/pods/one/container"), { recursive: true });
  mkdirSync(join(root, "cpu/pods/other"));
  mkdirSync(join(root, "memory/pods/one"), { recursive: true });
  await removeCgroup({ mounts, clock: new FakeClock() }, "/pods/one");
  assert.deepEqual(readdirSync(join(root, "cpu/pods")), ["other"]);
  assert.deepEqual(readdirSync(join(root, "memory/pods")), []);
});

test("a cgroup with a process is retried, left as it is, and the error names the process", async (t) => {
  const root = directoryFor(t);
  mkdirSync(join(root, "pods/one/container"), { recursive: true });
  writeFileSync(join(root, "pods/one/container/cgroup.procs"), "4711\n4712\n");
  const fake = new FakeClock();
  const removal = removeCgroup(
    { mounts: [{ version: 2, mountpoint: root, controllers: [] }], clock: fake },
    "/pods/one",
  );
  let isOver = false;
  removal.catch(() => {
    isOver = true;
  });
  while (!isOver) await fake.advance(1000);
  await assert.rejects(removal, (error) => {
    return error instanceof HostError && error.code === "Busy" && error.message.includes("2 processes: 4711, 4712");
  });
  assert.deepEqual(readdirSync(join(root, "pods/one")), ["container"]);
});

for (const path of ["/", "", "pods", "/a/../b", "/a//b", "/a/"]) {
  test(`the cgroup ${JSON.stringify(path)} is never removed`, async () => {
    await assert.rejects(removeCgroup({ mounts: [], clock }, path), codeIs("InvalidArgument"));
  });
}

test("the start time of a process is read, whatever its name", () => {
  const stat = "4711 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20";
  assert.deepEqual(parseStat(stat), { state: "S", startTime: "987654" });
  const startTime = host.processStartTime(process.pid) ?? "";
  assert.match(startTime, /^\d+$/);
  assert.equal(host.isAlive({ pid: process.pid, startTime }), true);
  assert.equal(host.isAlive({ pid: process.pid, startTime: "1" }), false);
  assert.equal(host.processStartTime(2 ** 22 + 1), undefined);
  for (const pid of [0, -1, Number.NaN]) assert.equal(host.isAlive({ pid, startTime: "1" }), false);
  assert.equal(host.signalProcess({ pid: process.pid, startTime: "1" }, "SIGKILL"), false, "not this one");
});

test("a process is signalled; a zombie counts as terminated", async () => {
  const child = spawn("sleep", ["600"]);
  const pid = child.pid ?? 0;
  const identity = { pid, startTime: host.processStartTime(pid) ?? "" };
  assert.equal(host.signalProcess(identity, "SIGKILL"), true);
  await new Promise((resolve) => child.on("exit", resolve));
  assert.equal(host.isAlive(identity), false);
});

test("cores, memory, system name and default route are read from what the kernel writes", () => {
  assert.deepEqual(["0-3,6\n", "0", "0-1,4-5,9", ""].map(countCores), [5, 1, 5, 0]);
  assert.equal(parseMemory("Foo: 1\nMemTotal:       2048 kB\nMemFree: 1 kB\n"), 2048 * 1024);
  assert.equal(
    parseOsRelease('NAME=x\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'),
    "Debian GNU/Linux 12 (bookworm)",
  );
  assert.equal(parseOsRelease("PRETTY_NAME=Alpine\n"), "Alpine");
  const routes = [
    "Iface Destination Gateway Flags RefCnt Use Metric Mask",
    "wlan0 00000000 0100A8C0 0003 0 0 600 00000000",
    "eth0 00000000 0100A8C0 0003 0 0 100 00000000",
    "eth1 0000A8C0 00000000 0001 0 0 100 00FFFFFF",
  ];
  assert.equal(defaultInterface(routes.join("\n")), "eth0");
  assert.equal(defaultInterface(""), undefined);
});

test("the facts of this machine are read", () => {
  const info = host.machineInfo();
  assert.ok(info.cores >= 1 && info.memoryBytes > 1e6 && info.kernel !== "" && info.bootId.length === 36);
  assert.deepEqual(Object.keys(host.machine()), ["cores", "memoryBytes", "addresses"]);
  for (const { address } of host.hostAddresses()) assert.doesNotMatch(address, /^(127\.|::1$|fe80:)/);
  assert.ok(host.mountTable().some(({ target }) => target === "/"));
  assert.equal(host.isMountPoint("/proc"), true);
  assert.equal(host.isMountPoint(join(tmpdir(), "no-mount")), false);
});

test("files: created directories have the requested mode whatever the umask, existing ones keep theirs", async (t) => {
  const root = directoryFor(t);
  const umask = process.umask(0o077);
  t.after(() => process.umask(umask));
  await host.makeDir(join(root, "a/b"), 0o777);
  assert.equal(statSync(join(root, "a/b")).mode & 0o777, 0o777);
  chmodSync(join(root, "a/b"), 0o700);
  await host.makeDir(join(root, "a/b"), 0o777);
  assert.equal(statSync(join(root, "a/b")).mode & 0o777, 0o700);
  writeFileSync(join(root, "file"), "");
  await assert.rejects(host.makeDir(join(root, "file/x"), 0o700), codeIs("InvalidArgument"));
});

test("files: a missing file is undefined or empty, and links are replaced atomically", async (t) => {
  const root = directoryFor(t);
  assert.equal(host.readSmall(join(root, "no")), undefined);
  assert.equal(await host.stat(join(root, "no")), undefined);
  assert.equal(await host.exists(join(root, "no")), false);
  assert.deepEqual(await host.list(join(root, "no")), []);
  await host.symlink("one", join(root, "link"));
  await host.symlink("two", join(root, "link"));
  assert.equal(readlinkSync(join(root, "link")), "two");
  assert.equal((await host.stat(join(root, "link")))?.kind, "link");
  await host.rename(join(root, "link"), join(root, "moved"));
  assert.deepEqual(await host.list(root), ["moved"]);
  await assert.rejects(host.chmod(join(root, "no"), 0o600), codeIs("NotFound"));
});

test("the kind of a user's path is determined by a child process, through links and odd names", async (t) => {
  const root = directoryFor(t);
  writeFileSync(join(root, "-a file\n"), "");
  symlinkSync("-a file\n", join(root, "link"));
  symlinkSync("nowhere", join(root, "dangling"));
  const { signal } = new AbortController();
  const kinds = ["", "-a file\n", "link", "dangling", "no", "link/below"].map((name) =>
    host.kindOf(join(root, name), { signal }),
  );
  const want = ["directory", "file", "file", undefined, undefined, undefined];
  assert.deepEqual(await Promise.all(kinds), want);
  assert.equal(await host.kindOf("/dev/null", { signal }), "charDevice");
});

for (const native of [true, false]) {
  const deps = native ? { clock } : { clock, loadCalls: async () => undefined };
  test(`${native ? "by system call" : "by command"}: a second lock attempt fails and names the holder`, async (t) => {
    const path = join(directoryFor(t), "lock");
    assert.equal(await lockHolder(deps, path), undefined);
    const lock = await takeLock(deps, path);
    await assert.rejects(takeLock(deps, path), (error) => {
      return (
        error instanceof HostError && error.code === "Locked" && error.message.includes(`process ${process.pid} (`)
      );
    });
    assert.equal((await lockHolder(deps, path))?.pid, process.pid);
    lock.release();
    lock.release();
    assert.equal(await lockHolder(deps, path), undefined);
    assert.equal(readFileSync(path, "utf8"), "");
    (await takeLock(deps, path)).release();
  });
}

test("a lock is released with its process, however that ends, and is not inherited by its children", async (t) => {
  const path = join(directoryFor(t), "lock");
  const program = `
    const load = async (name) => { const all = await import(name); return all.default ?? all; };
    const { LinuxHost } = await load("./src/adapters/host/index.ts");
    const { SystemClock } = await load("./src/lib/clock.ts");
    const { spawn } = await import("node:child_process");
    await new LinuxHost({ clock: new SystemClock() }).lock(${JSON.stringify(path)});
    const left = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
    process.stdout.write(String(left.pid));
  `;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program], {
    cwd: fileURLToPath(new URL("../../..", import.meta.url)),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const left = Number(await new Promise((resolve) => child.stdout.once("data", resolve)));
  t.after(() => process.kill(left, "SIGKILL"));
  const holder = await host.lockHolder(path);
  assert.equal(holder?.pid, child.pid);
  child.kill("SIGKILL");
  await new Promise((resolve) => child.on("exit", resolve));
  assert.equal(await host.lockHolder(path), undefined);
  (await host.lock(path)).release();
});

test("system errors become a HostError with a code once", () => {
  const system = Object.assign(new Error("EXDEV: x"), { code: "EXDEV" });
  const made = hostError("remove", system);
  assert.deepEqual([made.code, made.cause, made.message], ["Mounted", system, "remove: EXDEV: x"]);
  assert.equal(hostError("again", made), made);
  assert.equal(hostError("odd", "text").code, "Unknown");
});

test("trimming memory calls the C library", async (t) => {
  const calls = await SystemCalls.load();
  if (calls === undefined) return t.skip("no native calls here");
  const asked = t.mock.method(calls, "trimMemory");
  t.mock.method(SystemCalls, "load", () => Promise.resolve(calls));
  host.trimMemory();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked.mock.callCount(), 1);
  await asked.mock.calls[0]?.result;
});

test("a C library that cannot trim memory is ignored", async (t) => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on("unhandledRejection", note);
  t.after(() => process.off("unhandledRejection", note));
  for (const load of [() => Promise.reject(new Error("no library")), () => Promise.resolve(undefined)]) {
    const mock = t.mock.method(SystemCalls, "load", load);
    assert.doesNotThrow(() => host.trimMemory());
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(mock.mock.callCount(), 1);
    mock.mock.restore();
  }
  assert.deepEqual(unhandled, []);
});

describe("mounts near a path", () => {
  const line = (target: string): string => `36 35 0:32 / ${target} rw,relatime - tmpfs tmpfs rw`;
  const text = [line("/"), line("/a"), line("/a/b"), line("/a\\040b/c"), line("/x")].join("\n");
  const cases: [string, string[]][] = [
    ["/a", ["/a", "/a/b"]],
    ["/a/b", ["/a/b"]],
    ["/a b", ["/a b/c"]],
    ["/a b/c", ["/a b/c"]],
    ["/gone", []],
    ["/", ["/", "/a", "/a/b", "/a b/c", "/x"]],
  ];
  for (const [path, want] of cases) {
    test(`${path} are all of those at or below it`, () => {
      assert.deepEqual(
        mountsWithin(mountsNear(text, path), path).map(({ target }) => target),
        want,
      );
    });
  }
});
