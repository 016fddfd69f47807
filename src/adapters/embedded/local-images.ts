import { accessSync, readFileSync, statSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { readIfExists, writeAtomic } from "../../lib/atomic-file.ts";
import type { CriProbe } from "./cri-probe.ts";
import { EmbeddedError } from "./embedded-error.ts";
import type { EmbeddedDeps } from "./host.ts";
import { besideContainerd, type EmbeddedOptions, type Layout } from "./layout.ts";
import { buildOciArchive, imageArchitecture, type LocalImage } from "./oci-archive.ts";
import type { TarEntry } from "./tar.ts";

/** Holds a sandbox's namespaces. Made here, so that it needs no registry. */
export const PAUSE_IMAGE = "kubelet.local/pause:1";
/** A shell and its tools for the example pods. Made here too. */
export const DEMO_IMAGE = "kubelet.local/demo:1";
/** Images that exist only because we made them: garbage collection must leave them, no registry has them. */
export const LOCAL_IMAGES: readonly string[] = [PAUSE_IMAGE, DEMO_IMAGE];

/** Raise it when the images below change: they are then made and imported anew. */
const RECIPE = 1;

const PATH_ENV = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The sandbox image: catatonit, which reaps children and sleeps. */
export function pauseImage(catatonit: Uint8Array): LocalImage {
  return {
    name: PAUSE_IMAGE,
    files: [{ kind: "file", path: "catatonit", mode: 0o755, data: catatonit }],
    entrypoint: ["/catatonit", "-P"],
  };
}

/** The demo image: busybox under the names of all its applets, and the few files that programs expect. */
export function demoImage(busybox: Uint8Array, applets: readonly string[]): LocalImage {
  const directory = (path: string, mode = 0o755): TarEntry => ({ kind: "directory", path, mode });
  const file = (path: string, content: string): TarEntry => {
    return { kind: "file", path, mode: 0o644, data: Buffer.from(content) };
  };
  const links = applets.filter((applet) => applet !== "busybox").toSorted();
  return {
    name: DEMO_IMAGE,
    files: [
      directory("bin"),
      { kind: "file", path: "bin/busybox", mode: 0o755, data: busybox },
      ...links.map((applet) => ({ kind: "symlink", path: `bin/${applet}`, target: "busybox" }) as const),
      { kind: "symlink", path: "sbin", target: "bin" },
      directory("dev"),
      directory("etc"),
      file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
      file("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
      directory("proc"),
      directory("root", 0o700),
      directory("sys"),
      directory("tmp", 0o1777),
      directory("usr"),
      { kind: "symlink", path: "usr/bin", target: "../bin" },
      { kind: "symlink", path: "usr/sbin", target: "../bin" },
      directory("var"),
      directory("www", 0o1777),
    ],
    command: ["/bin/sh"],
    env: [PATH_ENV],
  };
}

/** Whether an ELF program needs a dynamic loader (it has a PT_INTERP header): such a one cannot run in our images. */
export function needsLoader(elf: Uint8Array): boolean {
  const view = Buffer.from(elf.buffer, elf.byteOffset, elf.byteLength);
  if (view.byteLength < 64 || view.readUInt32BE(0) !== 0x7f454c46) return true;
  const wide = view[4] === 2;
  const little = view[5] === 1;
  const u16 = (at: number): number => (little ? view.readUInt16LE(at) : view.readUInt16BE(at));
  const u32 = (at: number): number => (little ? view.readUInt32LE(at) : view.readUInt32BE(at));
  // The low half of a 64-bit offset is enough: program headers are at the file's beginning.
  const offset = wide ? u32(little ? 32 : 36) : u32(28);
  const size = u16(wide ? 54 : 42);
  const count = u16(wide ? 56 : 44);
  for (let i = 0; i < count; i++) if (u32(offset + i * size) === 3) return true;
  return false;
}

/** Makes sure that the runtime has our two images. Asks it first, so that a second start spends two calls. */
export async function ensureImages(
  deps: EmbeddedDeps,
  context: { layout: Layout; options: EmbeddedOptions; probe: CriProbe; snapshotter: string },
  { signal, progress }: Abortable & { progress: (text: string) => void },
): Promise<void> {
  const { layout, options, probe, snapshotter } = context;
  const sources = {
    busybox: findProgram(["/bin/busybox", "/usr/bin/busybox"], "busybox-static"),
    catatonit: findProgram(["/usr/bin/catatonit", "/usr/libexec/podman/catatonit"], "catatonit"),
  };
  const mark = JSON.stringify({ recipe: RECIPE, busybox: stamp(sources.busybox), catatonit: stamp(sources.catatonit) });
  const [made, ...present] = await Promise.all([
    readIfExists(layout.imagesFile),
    ...LOCAL_IMAGES.map((name) => probe.hasImage(name, { signal })),
  ]);
  if (made === mark && present.every(Boolean)) return;

  progress("making the sandbox and demo images");
  const listing = await deps.host.exec(sources.busybox, ["--list"], { signal });
  const images = [
    pauseImage(readStatic(sources.catatonit, "catatonit")),
    demoImage(readStatic(sources.busybox, "busybox-static"), listing.stdout.split("\n").filter(Boolean)),
  ];
  const archive = join(layout.runDir, "images.tar");
  await writeAtomic(archive, buildOciArchive(images, imageArchitecture(process.arch)), { sync: false });
  const ctr = ["--address", layout.socket, "--namespace", "k8s.io", "images"];
  const run = async (...args: string[]): Promise<void> => {
    const result = await deps.host.exec(besideContainerd(options, "ctr"), [...ctr, ...args], { signal });
    if (result.code === 0) return;
    throw new EmbeddedError("ImportFailed", `ctr images ${args[0]} failed: ${result.stderr.trim()}`);
  };
  await run("import", "--snapshotter", snapshotter, archive);
  await unlink(archive);
  // Where the runtime knows pinned images (1.7 and newer) its own answers then carry the mark.
  await Promise.all(LOCAL_IMAGES.map((name) => run("label", name, "io.cri-containerd.pinned=pinned")));
  await writeAtomic(layout.imagesFile, mark);
}

function findProgram(candidates: readonly string[], debianPackage: string): string {
  for (const path of candidates) {
    try {
      accessSync(path);
      return path;
    } catch {
      // Next one.
    }
  }
  throw new EmbeddedError("MissingProgram", `${candidates[0]} is missing: install ${debianPackage}`);
}

function readStatic(path: string, debianPackage: string): Uint8Array {
  const data = readFileSync(path);
  if (!needsLoader(data)) return data;
  throw new EmbeddedError("MissingProgram", `${path} is not statically linked: install ${debianPackage}`);
}

/** Tells a replaced program from the one that the images were made of. */
function stamp(path: string): string {
  const { size, mtimeMs } = statSync(path);
  return `${path} ${size} ${mtimeMs}`;
}
