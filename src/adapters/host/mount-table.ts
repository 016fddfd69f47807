import { readFileSync } from "node:fs";

/** One line of /proc/self/mountinfo. */
export interface MountEntry {
  readonly id: number;
  /** The filesystem's device: `8:16`, `0:42`. */
  readonly device: string;
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
    const [id, , device = "", root, target, options, ...tags] = line.slice(0, separator).split(" ");
    const [type, source, superOptions] = line.slice(separator + 3).split(" ");
    if (root === undefined || target === undefined || options === undefined || type === undefined) return [];
    return [
      {
        id: Number(id),
        device,
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

export interface OtherMounts {
  /** Only where the same directory of the filesystem is mounted. */
  readonly isWhole?: boolean;
  /** Also where other parts of the same filesystem are mounted. */
  readonly isAny?: boolean;
}

/** Where else the filesystem, or the part of it, that is mounted at a path is mounted, in whole or in part. Pure. */
export function otherMountsOf(
  table: readonly MountEntry[],
  path: string,
  { isWhole = false, isAny = false }: OtherMounts = {},
): string[] {
  const here = table.findLast(({ target }) => target === path);
  if (here === undefined) return [];
  const isMeant = (root: string): boolean => isAny || (isWhole ? root === here.root : isWithin(here.root, root));
  const isPart = ({ device, root }: MountEntry): boolean => device === here.device && isMeant(root);
  return table.filter((entry) => isPart(entry) && entry.target !== path).map(({ target }) => target);
}

/** The mount that a path lies on; the path must be absolute and free of links. Undefined only for an empty table. */
export function mountOf(table: readonly MountEntry[], path: string): MountEntry | undefined {
  // Later lines are mounted over earlier ones.
  return table.findLast(({ target }) => isWithin(target, path));
}

/**
 * The device of the filesystem that a path lies on, as `stat` would number it; undefined if no mount is known. Unlike that
 * of `stat` it is the same for all subvolumes of a btrfs. The path must be absolute and free of links. Pure.
 */
export function mountedDevice(text: string, path: string): number | undefined {
  const entries = text.split("\n").flatMap((line) => {
    const [, , device = "", , target] = line.split(" ", 5);
    return target === undefined ? [] : [{ device, target: unescape(target) }];
  });
  // The table is not in the order of paths: a root that was changed to comes late.
  const above = entries.filter(({ target }) => isWithin(target, path));
  const found = above.reduce((a, b) => (b.target.length >= a.target.length ? b : a), { device: "", target: "" }).device;
  const [major = Number.NaN, minor = Number.NaN] = found.split(":").map(Number);
  return Number.isInteger(major) && Number.isInteger(minor) ? numberOfDevice(major, minor) : undefined;
}

/** As the kernel encodes it for programs: 12 bits of the minor number are below and 8 above those of the major one. */
function numberOfDevice(major: number, minor: number): number {
  return (minor & 0xff) + (major & 0xfff) * 0x100 + (minor >>> 8) * 0x100000;
}

/** True for filesystems without a disk of their own to be numbered by, such as btrfs, tmpfs and overlay. */
export function isAnonymousDevice(device: number): boolean {
  return Math.floor(device / 0x100) % 0x1000 === 0;
}

function isWithin(target: string, path: string): boolean {
  return target === path || target === "/" || path.startsWith(`${target}/`);
}
