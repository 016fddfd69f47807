// One run of the test machine: its disks, qemu, and the output and exit code of the command inside.
import { spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { tail } from "../progress.mjs";
import { environment, makeDisk, ROOT_PARTITION } from "./disk.mjs";

/** Of the checkout; the packages come on a disk of their own. */
const LEFT_OUT = new Set([".git", "node_modules", "coverage"]);
const MARK = "vm: exit code ";
/** Quotas of users, groups and projects are counted from the first file on. */
const QUOTAS = ["-O", "project,quota", "-E", "quotatype=usrquota:grpquota:prjquota"];

/** Two sockets, each a NUMA node with two cores; one page of 1 GiB is taken of the first. */
const NUMA = [
  ...["-smp", "4,sockets=2,cores=2,threads=1", "-m", "5120"],
  ...[0, 1].flatMap((node) => [
    ...["-object", `memory-backend-ram,id=memory${node},size=2560M`],
    ...["-numa", `node,nodeid=${node},cpus=${node * 2}-${node * 2 + 1},memdev=memory${node}`],
  ]),
  ...["-numa", "dist,src=0,dst=1,val=20"],
];

/**
 * Lays the disks of a run into `work`: what the command needs, the checkout, its packages, an empty one, with quotas if the
 * kernel has them.
 */
export async function makeDisks(work, { root, command, env, binaries = {}, hasQuotas = true }) {
  const tools = join(work, "tools");
  mkdirSync(tools);
  copyFileSync(process.execPath, join(tools, "node"));
  for (const [name, folder] of Object.entries(binaries)) {
    mkdirSync(join(tools, name));
    for (const file of readdirSync(folder)) copyFileSync(join(folder, file), join(tools, name, file));
  }
  writeFileSync(join(tools, "command"), `${command}\n`);
  writeFileSync(join(tools, "run.sh"), runScript(env));
  const checkout = join(work, "checkout");
  cpSync(root, checkout, {
    recursive: true,
    filter: (path) => !(LEFT_OUT.has(basename(path)) && path === join(root, basename(path))),
  });
  mkdirSync(join(checkout, "node_modules"));
  chmodSync(checkout, 0o755);
  const disks = ["tools", "checkout", "modules", "data"].map((name) => join(work, `${name}.img`));
  const [toolDisk, checkoutDisk, moduleDisk, dataDisk] = disks;
  await makeDisk(toolDisk, { label: "vm-tools", sizeMib: 512, from: tools });
  await makeDisk(checkoutDisk, { label: "vm-checkout", sizeMib: 512, from: checkout });
  await makeDisk(moduleDisk, { label: "vm-modules", sizeMib: 1536, from: realpathSync(join(root, "node_modules")) });
  await makeDisk(dataDisk, { label: "vm-data", sizeMib: 8192, features: hasQuotas ? QUOTAS : [] });
  return disks;
}

function runScript(env) {
  const all = {
    PATH: "/vm:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/root",
    TMPDIR: "/data",
    ...env,
  };
  return [
    "stty -F /dev/ttyS1 -onlcr",
    // The user-mode kernel has neither quotas nor nftables for IPv4.
    "mountpoint -q /data || mount LABEL=vm-data /data",
    "if iptables -t nat -N vm-probe 2>/dev/null; then iptables -t nat -X vm-probe",
    "else update-alternatives --quiet --set iptables /usr/sbin/iptables-legacy; fi",
    ...Object.entries(all).map(([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'`),
    "ip link set lo up",
    "cd /checkout",
    "bash /vm/command",
    `code=$?; echo; echo "${MARK}$code"`,
    "",
  ].join("\n");
}

/** Boots, hands the command's output to `onText`, and answers with its exit code. */
export async function boot(work, { image, disks, signal, onText }) {
  const console = join(work, "console.log");
  const drives = [image.disk, ...disks].flatMap((file, index) => [
    ...["-drive", `file=${file},format=raw,if=none,id=d${index},snapshot=on`],
    ...["-device", `nvme-ns,drive=d${index},bus=disks,nsid=${index + 1}`],
  ]);
  const kernel = [
    `root=PARTUUID=${ROOT_PARTITION} rootwait rw console=ttyS0 loglevel=4 panic=-1 mitigations=off psi=1`,
    // Those of 2 MiB are spread over the nodes.
    "hugepagesz=1G hugepages=0:1 hugepagesz=2M hugepages=16",
    // A host that is busy just then is no broken timer, and no hung processor.
    "no_timer_check nowatchdog",
  ].join(" ");
  const child = spawn(
    "qemu-system-x86_64",
    [
      // One thread for all processors: with more, QEMU 7.2 sees code that the kernel changes too late. And its
      // cmpxchg16b spoils flags. Both end in a panic.
      ...["-accel", "tcg,thread=single", "-cpu", "max,-cx16,-la57,-pku,-smap,-smep"],
      ...NUMA,
      ...["-nic", "none", "-display", "none", "-monitor", "none", "-no-reboot"],
      ...["-kernel", image.kernel, "-append", kernel, "-device", "nvme,id=disks,serial=vm", ...drives],
      ...["-serial", `file:${console}`, "-serial", "stdio"],
    ],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...environment(), TMPDIR: work }, signal, killSignal: "SIGTERM" },
  );
  return await outcome(child, { console, onText });
}

/** Hands the command's output to `onText` until the machine ends, and answers with the command's exit code. */
export async function outcome(child, { console, onText }) {
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
    onText(text);
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    errors += text;
  });
  await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  const code = new RegExp(`^${MARK}(\\d+)`, "m").exec(output)?.[1];
  if (code !== undefined) return Number(code);
  const said = existsSync(console) ? readFileSync(console, "utf8") : "";
  throw new Error(`the machine ended before its command did\n${tail(`${errors}${said}`)}`);
}
