// The programs that the agent and its tests need from the machine, and how Debian provides them.
// Plain JavaScript without dependencies: node_modules may not exist yet.
import { closeSync, existsSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CommandError, run, say, yellow } from "./progress.mjs";

const BIN = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const CNI = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"];

/** Debian package, and the file that proves that it (or another build of it) is there. */
const RUNTIME_PACKAGES = [
  { name: "containerd", file: "containerd", in: BIN },
  { name: "runc", file: "runc", in: BIN },
  // Not by a name that PATH may have too: iproute2 brings another program that is called bridge.
  { name: "containernetworking-plugins", file: "host-local", in: CNI },
  { name: "iptables", file: "iptables", in: BIN },
  { name: "iproute2", file: "ip", in: BIN },
  { name: "nftables", file: "nft", in: BIN },
  { name: "conntrack", file: "conntrack", in: BIN },
  { name: "busybox-static", file: "busybox", in: BIN, proof: isStatic },
  { name: "catatonit", file: "catatonit", in: [...BIN, "/usr/libexec/podman", "/usr/lib/podman"], proof: isStatic },
];
const TEST_PACKAGES = [
  { name: "curl", file: "curl", in: BIN },
  { name: "dbus-daemon", file: "dbus-daemon", in: BIN },
  { name: "docker-registry", file: "docker-registry", in: BIN },
  { name: "prometheus", file: "promtool", in: BIN },
  { name: "etcd-server", file: "etcd", in: BIN },
  { name: "procps", file: "ps", in: BIN },
  { name: "util-linux", file: "nsenter", in: BIN },
  { name: "mount", file: "mount", in: BIN },
  { name: "chromium", file: "chromium", in: BIN },
  { name: "bindfs", file: "bindfs", in: BIN },
  { name: "xfsprogs", file: "mkfs.xfs", in: BIN },
];
/** What a runc with seccomp is built with, where there is a Go that could build it. */
const BUILD_PACKAGES = [
  { name: "gcc", file: "cc", in: BIN },
  { name: "libc6-dev", file: "stdio.h", in: ["/usr/include"] },
  { name: "pkg-config", file: "pkg-config", in: BIN },
  { name: "libseccomp-dev", file: "seccomp.h", in: ["/usr/include"] },
];

/** What the emulated machine is made and run with. */
const VM_PACKAGES = [
  { name: "qemu-system-x86", file: "qemu-system-x86_64", in: BIN },
  { name: "debootstrap", file: "debootstrap", in: BIN },
  { name: "e2fsprogs", file: "mke2fs", in: BIN },
];

/** The packages that are missing, by name. */
export function missingPackages({ forTests = false, forVm = false } = {}) {
  const wanted = [...RUNTIME_PACKAGES, ...(forTests ? TEST_PACKAGES : []), ...(forVm ? VM_PACKAGES : [])];
  if (forTests && find("go", []) !== undefined) wanted.push(...BUILD_PACKAGES);
  return wanted.filter(({ file, in: folders, proof }) => {
    const path = find(file, folders);
    return path === undefined || (proof !== undefined && !proof(path));
  });
}

/** The first such file in the search path and in these folders. */
function find(file, folders) {
  return [...(process.env.PATH ?? "").split(":"), ...folders]
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, file))
    .find((candidate) => existsSync(candidate));
}

/** A static program names no dynamic loader near its start; Debian's plain busybox does, and is of no use in an image. */
function isStatic(path) {
  const head = Buffer.alloc(8192);
  const file = openSync(path, "r");
  try {
    const length = readSync(file, head, 0, head.length, 0);
    return !head.subarray(0, length).includes("/ld-");
  } finally {
    closeSync(file);
  }
}

/** Why packages cannot be installed here, or undefined when they can. */
function packageObstacle() {
  if (process.getuid?.() !== 0) return "not root";
  if (!existsSync("/usr/bin/apt-get")) return "no apt-get: not a Debian machine";
  return undefined;
}

/** Installs what is missing; returns the packages that are still missing, having said what to do about them. */
export async function installPackages(options) {
  const missing = missingPackages(options);
  if (missing.length === 0) return [];
  const names = missing.map(({ name }) => name);
  const obstacle = packageObstacle();
  if (obstacle !== undefined) {
    say(yellow(`Missing: ${names.join(" ")} (${obstacle}).`));
    say(`  Debian or Ubuntu: sudo apt-get install --no-install-recommends ${names.join(" ")}`);
    say(`  elsewhere: install the programs ${missing.map(({ file }) => file).join(", ")} by your own means`);
    return names;
  }
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" };
  const install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", ...names];
  try {
    await run("apt-get update", ["apt-get", "update", "-q"], { env });
    await withoutServiceStarts(() => run(`apt-get install ${names.join(" ")}`, install, { env }));
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
  }
  const left = missingPackages(options).map(({ name }) => name);
  if (left.length > 0) say(yellow(`Still missing: ${left.join(" ")}. Try by hand: ${install.join(" ")}`));
  return left;
}

const POLICY = "/usr/sbin/policy-rc.d";
const POLICY_MARK = "# kubelet-ts setup";

/**
 * Debian starts the services that it installs; we bring our own containerd, so none is to start now.
 * The policy file asks whether we still live, so one left behind by a SIGKILL forbids nothing; the next run removes it.
 */
async function withoutServiceStarts(work) {
  if (existsSync(POLICY) && readFileSync(POLICY, "utf8").includes(POLICY_MARK)) rmSync(POLICY);
  if (existsSync(POLICY)) return work();
  const started = readFileSync("/proc/self/stat", "utf8").split(" ")[21];
  const script = [
    "#!/bin/sh",
    `${POLICY_MARK}: services do not start while process ${process.pid} installs packages`,
    `[ "$(cut -d' ' -f22 /proc/${process.pid}/stat 2>/dev/null)" = "${started}" ] && exit 101`,
    "exit 0",
  ];
  writeFileSync(POLICY, `${script.join("\n")}\n`, { mode: 0o755 });
  const remove = () => rmSync(POLICY, { force: true });
  const leave = () => {
    remove();
    process.exit(130);
  };
  process.once("SIGINT", leave).once("SIGTERM", leave).once("exit", remove);
  try {
    return await work();
  } finally {
    remove();
    process.off("SIGINT", leave).off("SIGTERM", leave).off("exit", remove);
  }
}
