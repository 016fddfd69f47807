import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What a driver of the tests may be told to do wrong. */
export type Misbehaviour = "hang" | "garbage" | "silent";

/** Shell words that every driver begins with: it writes its calls down, and misbehaves if it is told to. */
function head(dir: string): string {
  return `#!/bin/sh
D=${dir}
cmd=$1; shift
echo "$cmd $1" >> $D/calls
[ -e $D/hang-$cmd ] && exec sleep 600
[ -e $D/garbage-$cmd ] && { echo "what?"; exit 0; }
[ -e $D/silent-$cmd ] && exit 3
ok() { echo "{\\"status\\":\\"Success\\"$1}"; exit 0; }
fail() { echo "{\\"status\\":\\"Failure\\",\\"message\\":\\"$1\\"}"; exit 1; }
`;
}

/** Attaches files as loop devices and makes filesystems on them; the agent mounts and binds. */
function loopDriver(dir: string): string {
  return `${head(dir)}
name() { echo "$1" | sed -n 's/.*"kubernetes.io.pvOrVolumeName":"\\([^"]*\\)".*/\\1/p'; }
loop() { losetup -j "$1" | head -n 1 | cut -d: -f1; }
case $cmd in
init) ok ',"capabilities":{"attach":true}' ;;
attach)
  image=$D/$(name "$1").img
  [ -e $image ] || truncate -s 32M $image
  device=$(loop $image)
  [ -n "$device" ] || device=$(losetup -f --show $image) || fail "no loop device"
  ok ",\\"device\\":\\"$device\\"" ;;
waitforattach) ok ",\\"device\\":\\"$1\\"" ;;
detach)
  device=$(loop $D/$1.img)
  [ -z "$device" ] || losetup -d $device || fail "busy"
  ok ;;
mountdevice)
  mountpoint -q $1 && ok
  blkid $2 > /dev/null || mkfs.ext4 -q $2 || fail "mkfs"
  mount $2 $1 || fail "mount"
  ok ;;
unmountdevice)
  umount $1 || fail "umount"
  ok ;;
*) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`;
}

/** Mounts a filesystem of a daemon, which a test can stop. */
function fuseDriver(dir: string): string {
  return `${head(dir)}
# What is mounted may hang: only the kernel's table is asked.
mounted() { grep -q " $1 " /proc/self/mountinfo; }
case $cmd in
init) ok ',"capabilities":{"attach":false,"fsGroup":false}' ;;
mount)
  mounted $1 && ok
  mkdir -p $D/files
  bindfs $D/files $1 > /dev/null 2>&1 || fail "bindfs"
  ok ;;
unmount)
  mounted $1 && { umount -l $1 || fail "umount"; }
  ok ;;
*) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`;
}

/** A directory of flexVolume drivers, and what they work with. */
export class FlexDriverFiles {
  readonly dir = mkdtempSync(join(tmpdir(), "f-"));
  /** For `volumePluginDir`. */
  readonly exec = join(this.dir, "exec");
  private readonly data = join(this.dir, "d");

  constructor() {
    for (const path of [this.exec, this.data]) mkdirSync(path);
  }

  install(driver: "loop" | "fuse"): void {
    const directory = join(this.exec, `test.example~${driver}`);
    mkdirSync(directory, { recursive: true });
    const text = driver === "loop" ? loopDriver(this.data) : fuseDriver(this.data);
    writeFileSync(join(directory, driver), text, { mode: 0o755 });
  }

  uninstall(driver: "loop" | "fuse"): void {
    rmSync(join(this.exec, `test.example~${driver}`), { recursive: true });
  }

  /** The calls that there were: command and first argument. */
  calls(): readonly string[] {
    const file = join(this.data, "calls");
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  }

  misbehave(how: Misbehaviour, command: string): void {
    writeFileSync(join(this.data, `${how}-${command}`), "");
  }

  behave(): void {
    for (const name of readdirSync(this.data)) if (/^(hang|garbage|silent)-/.test(name)) rmSync(join(this.data, name));
  }

  /** Files that are attached as loop devices. */
  attached(): readonly string[] {
    const text = execFileSync("losetup", ["--noheadings", "--output", "BACK-FILE"], { encoding: "utf8" });
    return text.split("\n").filter((line) => line.startsWith(this.dir));
  }

  close(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
