import type { PathKind } from "../../adapters/host/path-kind.ts";
import type { Abortable } from "../../lib/abort.ts";
import { ownValue } from "../../lib/own-value.ts";
import type { HostPathVolumeSource } from "../../model/generated/types.ts";
import type { VolumeHost, VolumeKind } from "../kind.ts";

/** What must be at the path for each type; the two that create are handled apart. */
const EXPECTED: Readonly<Record<string, PathKind>> = {
  Directory: "directory",
  File: "file",
  Socket: "socket",
  CharDevice: "charDevice",
  BlockDevice: "blockDevice",
};

const WORDS: Readonly<Record<PathKind, string>> = {
  directory: "directory",
  file: "file",
  socket: "socket file",
  charDevice: "character device",
  blockDevice: "block device",
  other: "file of another type",
};

/** A path of the machine itself. It belongs to the user: nothing of it is ever removed. */
export const hostPath: VolumeKind = {
  plugin: "kubernetes.io/host-path",
  handles: (volume) => volume.hostPath !== undefined,
  handlesPersistent: (spec) => spec.hostPath !== undefined,
  refusesMountOptions: true,

  async setUp({ volume, persistent }, { host }, options) {
    const wanted = persistent?.object.spec.hostPath ?? volume.hostPath ?? { path: "" };
    if (persistent?.isBlock === true) {
      throw new Error(`volume "${persistent.object.metadata.name}" is a hostPath, which cannot have volumeMode Block`);
    }
    await checkHostPath(wanted, host, options);
    return { source: { kind: "path", path: wanted.path, readonly: persistent?.readonly === true, isUsers: true } };
  },
};

/** Makes or checks what must be at the path. */
export async function checkHostPath(
  { path, type = "" }: HostPathVolumeSource,
  host: VolumeHost,
  options: Abortable,
): Promise<void> {
  if (type === "") return;
  const found = await host.kindOf(path, options);
  if (type === "DirectoryOrCreate" && found === undefined) return host.makeDir(path, 0o755);
  if (type === "FileOrCreate" && found === undefined) return host.makeFile(path, 0o644);
  const expected =
    type === "DirectoryOrCreate" ? "directory" : type === "FileOrCreate" ? "file" : ownValue(EXPECTED, type);
  const failed = "hostPath type check failed:";
  if (expected === undefined) throw new Error(`${failed} unknown hostPath.type "${type}"`);
  if (expected === found) return;
  const shown = found === undefined ? "nothing" : `a ${WORDS[found]}`;
  throw new Error(`${failed} ${path} is not a ${WORDS[expected]} but ${shown} (hostPath.type is ${type})`);
}
