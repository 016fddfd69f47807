import type { Abortable } from "../lib/abort.ts";
import { ExpandError } from "./expansion/expand-error.ts";
import type { VolumeHost } from "./kind.ts";

/** Growing a filesystem writes its structures for the new space: minutes on a slow disk. */
const GROW_MS = 600_000;
const PROBE_MS = 30_000;

/** Grows the filesystem on a device to the size of the device; one without a filesystem needs nothing. */
export async function growFilesystem(
  { device, mountPath }: { readonly device: string; readonly mountPath: string },
  host: Pick<VolumeHost, "run">,
  options: Abortable,
): Promise<void> {
  const probe = ["blkid", "-p", "-s", "TYPE", "-o", "value", "--", device] as const;
  const { stdout } = await host.run(probe, { ...options, timeoutMs: PROBE_MS });
  const format = stdout.trim();
  const command = commandFor(format, device, mountPath);
  if (command === undefined) return;
  const { code, stdout: said, stderr } = await host.run(command, { ...options, timeoutMs: GROW_MS });
  if (code === 0) return;
  const output = `${command[0]} output: ${`${stderr}${said}`.trim()}`;
  throw new ExpandError("final", `resize of device ${device} failed: exit status ${code}. ${output}`);
}

function commandFor(format: string, device: string, mountPath: string): readonly [string, ...string[]] | undefined {
  switch (format) {
    case "":
      return undefined;
    case "ext3":
    case "ext4":
      return ["resize2fs", device];
    case "xfs":
      return ["xfs_growfs", "-d", mountPath];
    case "btrfs":
      return ["btrfs", "filesystem", "resize", "max", mountPath];
    default: {
      const words = `resize of format ${format} is not supported for device ${device} mounted at ${mountPath}`;
      throw new ExpandError("final", words);
    }
  }
}
