import { basename, dirname } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { Inotify, MASK } from "../../lib/inotify.ts";
import { HostError } from "./host-error.ts";

/** Calls back once when somebody opens the file or takes it away, until the signal aborts. */
export async function watchOpened(path: string, fn: () => void, { signal }: Abortable): Promise<void> {
  const inotify = await Inotify.open();
  if (inotify === undefined) throw new HostError("Unsupported", `watch ${path}: inotify is not available`);
  const name = basename(path);
  const end = (): void => inotify.close();
  inotify.add(dirname(path), MASK.open | MASK.delete | MASK.movedFrom | MASK.movedTo);
  signal.addEventListener("abort", end, { once: true });
  inotify.listen((event) => {
    if (event.name !== name) return;
    signal.removeEventListener("abort", end);
    end();
    fn();
  });
}
