import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildOciArchive, imageArchitecture } from "../../../src/adapters/embedded/oci-archive.ts";
import type { Site } from "./site.ts";
import { until } from "./until.ts";

type Image = Parameters<typeof buildOciArchive>[0][number];
type ImageFile = Image["files"][number];

/** Gives the site's runtime an image, by the `ctr` that belongs to it. */
export async function importImage(site: Site, image: Image, ctr = "ctr"): Promise<void> {
  const { signal } = new AbortController();
  const archive = join(site.dir, "image.tar");
  writeFileSync(archive, buildOciArchive([image], imageArchitecture(process.arch)));
  // The agent answers before its runtime does.
  await until("the runtime is there", () =>
    site.cri.version({ signal }).then(
      () => true,
      () => false,
    ),
  );
  execFileSync(ctr, ["-a", site.layout.socket, "-n", "k8s.io", "images", "import", archive]);
}

/** The files of an image with a few commands, a user `tester` (1000), and a group 4000 that it is in. */
export function testerFiles(): readonly ImageFile[] {
  return [
    { kind: "directory", path: "bin", mode: 0o755 },
    { kind: "file", path: "bin/busybox", mode: 0o755, data: readFileSync(tool("busybox")) },
    ...["sh", "id", "sleep"].map((name) => ({ kind: "symlink", path: `bin/${name}`, target: "busybox" }) as const),
    { kind: "directory", path: "etc", mode: 0o755 },
    file("etc/passwd", "root:x:0:0:root:/:/bin/sh\ntester:x:1000:1000:tester:/:/bin/sh\n"),
    file("etc/group", "root:x:0:\ntester:x:1000:\nextra:x:4000:tester\n"),
  ];
}

function file(path: string, content: string): ImageFile {
  return { kind: "file", path, mode: 0o644, data: Buffer.from(content) };
}

function tool(name: string): string {
  return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
}
