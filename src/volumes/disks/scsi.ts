import { basename } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import type { VolumeHost } from "../kind.ts";

/** What looking for disks needs of the machine. */
export type ScsiHost = Pick<VolumeHost, "list" | "readFile" | "realPath" | "run" | "isDeviceHeld">;

/** Time limits of what a disk or a driver of the kernel may hang in, in milliseconds. */
const WRITE_MS = 30_000;
const FLUSH_MS = 60_000;

/** Runs a command to its end; rejects with what it printed if it fails. */
export async function mustRun(
  command: readonly [string, ...string[]],
  host: Pick<VolumeHost, "run">,
  options: Abortable & { timeoutMs: number },
): Promise<string> {
  const { code, stdout, stderr } = await host.run(command, options);
  if (code === 0) return stdout;
  throw new Error(`${command[0]} exited with code ${code}: ${`${stdout}${stderr}`.trim()}`);
}

/** Writes to a file of the kernel in a child process: a bus that is scanned, or a disk that is deleted, may hang. */
export async function writeKernelFile(
  path: string,
  text: string,
  { host, ...options }: Abortable & { readonly host: Pick<VolumeHost, "run"> },
): Promise<void> {
  const { code, stderr } = await host.run(["tee", "--", path], { ...options, timeoutMs: WRITE_MS, input: text });
  if (code !== 0) throw new Error(`write ${path}: ${stderr.trim() || `code ${code}`}`);
}

/** The multipath device that a disk belongs to, `/dev/dm-0`; undefined if it belongs to none. */
export async function multipathOf(device: string, host: ScsiHost): Promise<string | undefined> {
  const real = await host.realPath(device).catch(() => device);
  if (real.startsWith("/dev/dm-")) return real;
  for (const name of await host.list("/sys/block")) {
    if (!name.startsWith("dm-")) continue;
    if ((await host.list(`/sys/block/${name}/slaves`)).includes(basename(real))) return `/dev/${name}`;
  }
  return undefined;
}

/** The disks behind a multipath device, `/dev/sda`. */
export async function pathsOf(multipath: string, host: ScsiHost): Promise<readonly string[]> {
  return (await host.list(`/sys/block/${basename(multipath)}/slaves`)).map((name) => `/dev/${name}`);
}

/** Removes the map of a multipath device; rejects if somebody uses it. */
export async function flushMultipath(multipath: string, host: ScsiHost, options: Abortable): Promise<void> {
  await mustRun(["multipath", "-f", multipath], host, { ...options, timeoutMs: FLUSH_MS });
}

/** Rejects if something still uses the device: what is not written back yet would be lost. */
export async function checkReleased(device: string, host: ScsiHost, options: Abortable): Promise<void> {
  if (await host.isDeviceHeld(device, options))
    throw new Error(`the device ${device} is in use when it was no longer expected to be in use`);
}

/** Takes a disk away from the kernel; one that is gone is success. */
export async function removeDisk(device: string, host: ScsiHost, options: Abortable): Promise<void> {
  const name = basename(device);
  if (!(await host.list(`/sys/block/${name}/device`)).includes("delete")) return;
  await writeKernelFile(`/sys/block/${name}/device/delete`, "1", { host, ...options });
}
