import type { Volume } from "./generated/types.ts";
import { isDnsLabel } from "./names.ts";
import type { Problems } from "./problems.ts";
import { tryParseQuantity } from "./quantity.ts";
import { checkWrittenVolume } from "./validate-projection.ts";

const HOST_PATH_TYPES = [
  "",
  "DirectoryOrCreate",
  "Directory",
  "FileOrCreate",
  "File",
  "Socket",
  "CharDevice",
  "BlockDevice",
];

/** Checks the volumes; the answer is their names, for the mounts that refer to them. */
export function checkVolumes(volumes: readonly Volume[], problems: Problems): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [index, volume] of volumes.entries()) {
    const path = `spec.volumes[${index}]`;
    if (!isDnsLabel(volume.name)) {
      const fix = "use at most 63 lower-case letters, digits and -";
      problems.add(`${path}.name`, volume.name, { message: "is not a valid volume name", fix });
    } else if (names.has(volume.name)) {
      problems.add(`${path}.name`, volume.name, { message: "is used twice", fix: "give each volume its own name" });
    }
    names.add(volume.name);
    checkSource(path, volume, problems);
  }
  return names;
}

function checkSource(path: string, volume: Volume, problems: Problems): void {
  const sources = Object.keys(volume).filter((key) => key !== "name");
  if (sources.length !== 1) {
    const fix = sources.length === 0 ? "name one, such as emptyDir: {}" : `keep one of ${sources.join(", ")}`;
    problems.add(path, undefined, { message: "must have exactly one kind of volume", fix });
  }
  checkWrittenVolume(path, volume, problems);
  const { hostPath, emptyDir } = volume;
  if (hostPath !== undefined) {
    problems.oneOf(`${path}.hostPath.type`, hostPath.type, HOST_PATH_TYPES);
    if (hostPath.path === "") {
      problems.add(`${path}.hostPath.path`, undefined, { message: "is required", fix: "name a path of the node" });
    } else if (hasParentSegment(hostPath.path)) {
      problems.add(`${path}.hostPath.path`, hostPath.path, {
        message: "must not contain ..",
        fix: "write the path out",
      });
    } else if (!hostPath.path.startsWith("/")) {
      problems.add(`${path}.hostPath.path`, hostPath.path, { message: "must be absolute", fix: "begin it with /" });
    } else if (hostPath.path.includes("\0")) {
      problems.add(`${path}.hostPath.path`, undefined, { message: "contains a NUL character", fix: "remove it" });
    }
  }
  if (emptyDir !== undefined) {
    const { medium = "", sizeLimit } = emptyDir;
    if (medium !== "" && medium !== "Memory" && !/^HugePages(?:-\w+)?$/.test(medium)) {
      problems.oneOf(`${path}.emptyDir.medium`, medium, ["", "Memory", "HugePages", "HugePages-<size>"]);
    }
    const limit = sizeLimit === undefined ? undefined : tryParseQuantity(sizeLimit);
    if (limit !== undefined && limit.nano < 0n) {
      problems.add(`${path}.emptyDir.sizeLimit`, sizeLimit, { message: "is negative", fix: "write 0 or more" });
    }
  }
}

/** True when one of the path's parts is `..`. */
export function hasParentSegment(path: string): boolean {
  return path.split("/").includes("..");
}
