import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import type { EmbeddedHost } from "./host.ts";
import type { Layout } from "./layout.ts";

export type SnapshotterName = "overlayfs" | "native";

/** Overlay where it can be mounted on the state directory's filesystem (found by trying), else whole copies. */
export async function usableSnapshotter(
  host: EmbeddedHost,
  layout: Layout,
  { signal }: Abortable,
): Promise<SnapshotterName> {
  const base = join(layout.runDir, "overlay-check");
  const path = (name: string): string => join(base, name);
  for (const name of ["lower", "upper", "work", "merged"]) mkdirSync(path(name), { recursive: true });
  const layers = `lowerdir=${path("lower")},upperdir=${path("upper")},workdir=${path("work")}`;
  const mounted = await host.exec("mount", ["-t", "overlay", "overlay", "-o", layers, path("merged")], { signal });
  if (mounted.code === 0) await host.exec("umount", [path("merged")], { signal });
  // The kernel makes work/work; everything is empty, so plain rmdir does it.
  for (const name of ["merged", "work/work", "work", "upper", "lower", "."]) removeEmpty(path(name));
  return mounted.code === 0 ? "overlayfs" : "native";
}

function removeEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Left for the next try or for tearDown; it holds nothing.
  }
}
