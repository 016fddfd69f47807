import { readFileSync } from "node:fs";

/** One line of /proc/self/mountinfo. */
export interface MountEntry {
  readonly id: number;
  /** The directory of the filesystem that is mounted; not `/` for a bind mount of a part. */
  readonly root: string;
  readonly target: string;
  /** Flags of this mount: `ro`, `nosuid` … */
  readonly options: readonly string[];
  readonly type: string;
  readonly source: string;
  /** Flags of the filesystem: for cgroup v1 the controllers. */
  readonly superOptions: readonly string[];
  /** What is mounted below it appears in the other mounts of its peer group, and the other way round. */
  readonly isShared: boolean;
}

/** The mounts of this process's namespace. */
export function readMountTable(): MountEntry[] {
  return parseMountTable(readFileSync("/proc/self/mountinfo", "utf8"));
}

/**
 * Only the mounts that may be at or below a path. A node has hundreds of mounts, and most questions are about one path:
 * lines that cannot be about it are not taken apart.
 */
export function readMountsNear(path: string): MountEntry[] {
  return mountsNear(readFileSync("/proc/self/mountinfo", "utf8"), path);
}

/** Pure: by the part of the path that the kernel writes as it is, so that none is missed. */
export function mountsNear(text: string, path: string): MountEntry[] {
  const words = /^[^\s\\#]*/.exec(path)?.[0] ?? "";
  if (!text.includes(words)) return [];
  return parseMountTable(
    text
      .split("\n")
      .filter((line) => line.includes(words))
      .join("\n"),
  );
}

/** Pure: lines that are not understood are left out. */
export function parseMountTable(text: string): MountEntry[] {
  return text.split("\n").flatMap((line) => {
    // "36 35 98:0 /root /target rw,noatime optional… - type source super-options"
    const separator = line.indexOf(" - ");
    if (separator === -1) return [];
    const [id, , , root, target, options, ...tags] = line.slice(0, separator).split(" ");
    const [type, source, superOptions] = line.slice(separator + 3).split(" ");
    if (root === undefined || target === undefined || options === undefined || type === undefined) return [];
    return [
      {
        id: Number(id),
        root: unescape(root),
        target: unescape(target),
        options: options.split(","),
        type,
        source: unescape(source ?? ""),
        superOptions: (superOptions ?? "").split(",").filter(Boolean),
        isShared: tags.some((tag) => tag.startsWith("shared:")),
      },
    ];
  });
}

/** Blanks, tabs, newlines and backslashes are written as three octal digits, byte by byte. */
function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** The mounts at or below a path, which must be absolute and free of links. */
export function mountsWithin(table: readonly MountEntry[], path: string): MountEntry[] {
  const below = path === "/" ? "/" : `${path}/`;
  return table.filter(({ target }) => target === path || target.startsWith(below));
}

/** The mount that a path lies on; the path must be absolute and free of links. Undefined only for an empty table. */
export function mountOf(table: readonly MountEntry[], path: string): MountEntry | undefined {
  // Later lines are mounted over earlier ones.
  return table.findLast(({ target }) => isWithin(target, path));
}

function isWithin(target: string, path: string): boolean {
  return target === path || target === "/" || path.startsWith(`${target}/`);
}
