// Disk images made from directories, without mounting anything.
import { execFile } from "node:child_process";
import { closeSync, openSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { promisify } from "node:util";

const MIB = 2 ** 20;
/** Marks the disk of the root filesystem; the kernel finds it by this and the number of the partition. */
const SIGNATURE = 0x6b746b74;
export const ROOT_PARTITION = `${SIGNATURE.toString(16)}-01`;

/** An ext4 filesystem of `sizeMib` in a sparse file, with the content of `from` where that is given. */
export async function makeDisk(file, { label, sizeMib, from, features = [] }) {
  writeFileSync(file, "");
  truncateSync(file, sizeMib * MIB);
  await mkfs([...features, ...(from === undefined ? [] : ["-d", from]), "-L", label, file]);
}

/** The same in a partition: a kernel that starts by itself finds its root only by the number of one. */
export async function makeRootDisk(file, { label, sizeMib, from }) {
  writeFileSync(file, "");
  truncateSync(file, (sizeMib + 2) * MIB);
  await mkfs(["-E", `offset=${MIB}`, "-d", from, "-L", label, file, `${sizeMib}M`]);
  const table = Buffer.alloc(512);
  table.writeUInt32LE(SIGNATURE, 440);
  table[446 + 4] = 0x83; // Linux
  table.writeUInt32LE(MIB / 512, 446 + 8);
  table.writeUInt32LE((sizeMib * MIB) / 512, 446 + 12);
  table.writeUInt16LE(0xaa55, 510);
  const disk = openSync(file, "r+");
  writeSync(disk, table, 0, table.length, 0);
  closeSync(disk);
}

async function mkfs(args) {
  await promisify(execFile)("mke2fs", ["-q", "-F", "-t", "ext4", ...args], { env: environment() });
}

/** Programs of the administrator's, whatever the PATH of a plain user says. */
export function environment() {
  return { ...process.env, LC_ALL: "C.UTF-8", PATH: `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin` };
}
