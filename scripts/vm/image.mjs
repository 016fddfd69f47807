// The kernel and the root filesystem of the test machine: Debian with systemd, made once and kept in a cache.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "../progress.mjs";
import { environment, makeRootDisk } from "./disk.mjs";

const SUITE = "bookworm";
/** Newer than the suite's own: mounts of tmpfs can be mapped from 6.3 on, and NVMe disks need no module. */
const KERNEL_SUITE = `${SUITE}-backports`;
const KERNEL = "linux-image-cloud-amd64";
/** A kernel that is a program of this machine: faster by far than an emulated one, with one processor and no NUMA nodes. */
const USER_KERNEL = "user-mode-linux";
const PACKAGES = [
  ..."systemd systemd-sysv dbus udev kmod apparmor e2fsprogs quota procps util-linux mount uidmap openssl criu".split(
    " ",
  ),
  ..."containerd runc containernetworking-plugins iptables iproute2 busybox-static catatonit docker-registry".split(
    " ",
  ),
  ..."libstdc++6 strace xz-utils".split(" "),
  // What volumes of a network are tested with: servers and clients both.
  ..."nfs-kernel-server nfs-common tgt open-iscsi multipath-tools".split(" "),
];
/** What would only take time, or listen where the tests do. */
const MASKED = [
  ..."containerd.service docker-registry.service systemd-logind.service systemd-timesyncd.service".split(" "),
  ..."getty@tty1.service serial-getty@ttyS0.service serial-getty@ttyS1.service".split(" "),
  ..."nfs-server.service nfs-blkmap.service rpcbind.service rpcbind.socket rpc-statd.service nfs-mountd.service".split(
    " ",
  ),
  ..."tgt.service iscsid.service iscsid.socket open-iscsi.service multipathd.service multipathd.socket".split(" "),
  ..."apt-daily.timer apt-daily-upgrade.timer fstrim.timer e2scrub_all.timer dpkg-db-backup.timer".split(" "),
];
const FILES = {
  "etc/hostname": "vm\n",
  "etc/hosts": "127.0.0.1 localhost vm\n",
  "etc/resolv.conf": "",
  "etc/fstab": [
    "LABEL=vm-root / ext4 defaults 0 0",
    "LABEL=vm-tools /vm ext4 ro 0 0",
    "LABEL=vm-checkout /checkout ext4 defaults 0 0",
    "LABEL=vm-modules /checkout/node_modules ext4 ro 0 0",
    // A kernel without quotas mounts it without them, see the script of a run.
    "LABEL=vm-data /data ext4 prjquota,nofail 0 0",
    "",
  ].join("\n"),
  "etc/systemd/system/vm-command.service": [
    "[Unit]",
    "Description=The command of this run",
    "After=basic.target dbus.service apparmor.service local-fs.target data.mount",
    "RequiresMountsFor=/vm /checkout/node_modules",
    "[Service]",
    "Type=oneshot",
    "ExecStart=/bin/bash /vm/run.sh",
    "ExecStopPost=/bin/systemctl --no-block --force poweroff",
    "StandardOutput=tty",
    "StandardError=tty",
    "TTYPath=/dev/ttyS1",
    "TimeoutStartSec=infinity",
    "",
  ].join("\n"),
};
const SIZE_MIB = 3072;

/** Programs that are needed, and the package of each. */
const TOOLS = {
  "qemu-system-x86_64": "qemu-system-x86",
  debootstrap: "debootstrap",
  mke2fs: "e2fsprogs",
  "dpkg-deb": "dpkg",
};

/** Why there can be no machine here, or undefined. */
export function obstacle() {
  if (process.arch !== "x64") return `the emulated machine is x86-64, and this one is ${process.arch}`;
  if (process.getuid?.() !== 0) return "not root";
  const places = environment().PATH.split(":");
  const missing = Object.keys(TOOLS).filter((tool) => !places.some((place) => existsSync(join(place, tool))));
  if (missing.length === 0) return undefined;
  return `not installed: ${missing.join(", ")} (apt-get install --no-install-recommends ${missing.map((tool) => TOOLS[tool]).join(" ")})`;
}

/** Answers with `{ kernel, userKernel, disk }`, having made them if they are not there (minutes, about 1 GB). */
export async function vmImage() {
  const key = createHash("sha256")
    .update(readFileSync(import.meta.filename))
    .digest("hex")
    .slice(0, 12);
  const target = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "kubelet-ts", `vm-${key}`);
  const [kernel, userKernel, disk] = ["vmlinuz", "linux.uml", "root.img"].map((name) => join(target, name));
  const found = { kernel, userKernel, disk };
  if (existsSync(found.disk)) return found;
  mkdirSync(dirname(target), { recursive: true });
  // Beside and renamed, so that half an image is never taken for a whole one.
  const work = mkdtempSync(`${target}.build-`);
  try {
    await make(work);
    rmSync(join(work, "root"), { recursive: true });
    rmSync(target, { recursive: true, force: true });
    renameSync(work, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return found;
}

async function make(work) {
  const tree = join(work, "root");
  const env = { ...environment(), DEBIAN_FRONTEND: "noninteractive" };
  const mirror = debianMirror();
  const include = `--include=${PACKAGES.join(",")}`;
  await run("debootstrap", ["debootstrap", "--variant=minbase", include, SUITE, tree, mirror], { env });
  await kernels({ work, tree, mirror }, env);
  for (const [path, text] of Object.entries(FILES)) writeFileSync(join(tree, path), text);
  for (const folder of ["vm", "checkout", "data"]) mkdirSync(join(tree, folder));
  const units = join(tree, "etc/systemd/system");
  for (const unit of MASKED) link("/dev/null", join(units, unit));
  link("/lib/systemd/system/multi-user.target", join(units, "default.target"));
  link("../vm-command.service", join(units, "multi-user.target.wants/vm-command.service"));
  for (const path of ["var/cache/apt/archives", "var/lib/apt/lists"])
    rmSync(join(tree, path), { recursive: true, force: true });
  await makeRootDisk(join(work, "root.img"), { label: "vm-root", sizeMib: SIZE_MIB, from: tree });
}

/** Where this machine gets Debian's packages from. */
function debianMirror() {
  const { stdout } = spawnSync("apt-get", ["indextargets", "--format", "$(LABEL) $(REPO_URI)"], { encoding: "utf8" });
  const uri = /^Debian (\S+)$/m.exec(stdout ?? "")?.[1];
  if (uri === undefined) throw new Error("apt knows no Debian packages here: run apt-get update, on a Debian machine");
  return uri;
}

/** Only their files: what the packages would do on a machine that starts from its disk is not wanted here. */
async function kernels({ work, tree, mirror }, env) {
  writeFileSync(
    join(tree, "etc/apt/sources.list"),
    [SUITE, KERNEL_SUITE].map((suite) => `deb ${mirror} ${suite} main\n`).join(""),
  );
  copyFileSync("/etc/resolv.conf", join(tree, "etc/resolv.conf"));
  await run("apt-get update", ["chroot", tree, "apt-get", "update", "-q"], { env });
  const files = join(work, "kernel");
  const apt = ["apt-get", "install", "-y", "-q", "--download-only", "--no-install-recommends", "-t", KERNEL_SUITE];
  const archives = join(tree, "var/cache/apt/archives");
  for (const name of [KERNEL, USER_KERNEL]) {
    await run(`apt-get download ${name}`, ["chroot", tree, ...apt, name], { env });
    const archive = readdirSync(archives).find((file) => /^linux-image-\d/.test(file) || file.startsWith(`${name}_`));
    if (archive === undefined) throw new Error(`no kernel came with ${name}`);
    await run(`kernel ${archive}`, ["dpkg-deb", "-x", join(archives, archive), files], { env });
    for (const file of readdirSync(archives).filter((each) => each.endsWith(".deb"))) rmSync(join(archives, file));
  }
  const [version] = readdirSync(join(files, "lib/modules"));
  copyFileSync(join(files, "boot", `vmlinuz-${version}`), join(work, "vmlinuz"));
  copyFileSync(join(files, "usr/bin/linux.uml"), join(work, "linux.uml"));
  chmodSync(join(work, "linux.uml"), 0o755);
  for (const folder of ["lib/modules", "usr/lib/uml/modules"]) {
    const versions = readdirSync(join(files, folder));
    await run("modules", ["cp", "-a", join(files, folder), join(tree, "lib")], { env });
    for (const each of versions) await run("depmod", ["chroot", tree, "depmod", each], { env });
  }
  rmSync(files, { recursive: true });
}

function link(to, path) {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true });
  symlinkSync(to, path);
}
