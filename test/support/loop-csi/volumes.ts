import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";

/** A refusal with its code, in the words that the caller sees. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

export interface LoopVolume {
  readonly id: string;
  readonly name: string;
  readonly bytes: number;
}

/**
 * Volumes that are files with a filesystem on a loop device. All that is known is on disk or in the kernel, so that the
 * driver may be killed at any time.
 */
export class LoopVolumes {
  constructor(private readonly dir: string) {
    mkdirSync(dir, { recursive: true });
  }

  find(id: string): LoopVolume {
    const path = this.file(id, "json");
    if (!existsSync(path)) throw new Refusal(status.NOT_FOUND, `there is no volume ${id}`);
    return JSON.parse(readFileSync(path, "utf8")) as LoopVolume;
  }

  byName(name: string): LoopVolume | undefined {
    return readdirSync(this.dir)
      .filter((file) => file.endsWith(".json"))
      .map((file) => JSON.parse(readFileSync(join(this.dir, file), "utf8")) as LoopVolume)
      .find((volume) => volume.name === name);
  }

  create(volume: LoopVolume): LoopVolume {
    writeFileSync(this.file(volume.id, "img"), "");
    this.resize(volume, volume.bytes);
    return volume;
  }

  /** Makes the file larger; the loop device and the filesystem follow on the node. */
  resize(volume: LoopVolume, bytes: number): void {
    truncateSync(this.file(volume.id, "img"), bytes);
    const temporary = this.file(volume.id, "tmp");
    writeFileSync(temporary, JSON.stringify({ ...volume, bytes }));
    renameSync(temporary, this.file(volume.id, "json"));
  }

  remove(id: string): void {
    for (const kind of ["json", "img"]) rmSync(this.file(id, kind), { force: true });
  }

  /** The loop device of a volume that is attached. */
  device(id: string): string | undefined {
    const line = command("losetup", ["--associated", this.file(id, "img"), "--noheadings", "--output", "NAME"]);
    return line.split("\n")[0]?.trim() || undefined;
  }

  attach(id: string): string {
    const known = this.device(id);
    if (known !== undefined) return known;
    return command("losetup", ["--find", "--show", this.file(id, "img")]).trim();
  }

  detach(id: string): void {
    const device = this.device(id);
    if (device !== undefined) command("losetup", ["--detach", device]);
  }

  /** Tells the kernel that the file has grown. */
  grow(id: string): string {
    const device = this.attach(id);
    command("losetup", ["--set-capacity", device]);
    return device;
  }

  private file(id: string, kind: string): string {
    if (!/^[A-Za-z0-9._-]+$/.test(id)) throw new Refusal(status.NOT_FOUND, `there is no volume ${id}`);
    return join(this.dir, `${id}.${kind}`);
  }
}

/** Runs a command; what it writes to stderr is the message of its failure. */
export function command(file: string, args: readonly string[]): string {
  try {
    return execFileSync(file, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    const words = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : String(error);
    throw new Refusal(status.INTERNAL, `${file}: ${words}`);
  }
}

/** The filesystem on a device, empty if there is none. */
export function formatOf(device: string): string {
  try {
    return execFileSync("blkid", ["-p", "-s", "TYPE", "-o", "value", device], { encoding: "utf8" }).trim();
  } catch {
    return "";
  }
}

export interface Mounted {
  readonly source: string;
  readonly isReadonly: boolean;
}

/** What is mounted at a path. */
export function mountedAt(path: string): Mounted | undefined {
  const line = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .findLast((one) => one.split(" ")[4] === path);
  if (line === undefined) return undefined;
  const [, , , , , options = ""] = line.split(" ");
  const source = line.split(" - ")[1]?.split(" ")[1] ?? "";
  return { source, isReadonly: options.split(",").includes("ro") };
}

/** Unmounts all that is at a path and removes the path. */
export function removeTarget(path: string): void {
  while (mountedAt(path) !== undefined) command("umount", [path]);
  if (!existsSync(path)) return;
  if (statSync(path).isDirectory()) rmdirSync(path);
  else unlinkSync(path);
}

/** An empty file to bind a device to. */
export function makeFile(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, "w", 0o600));
}
