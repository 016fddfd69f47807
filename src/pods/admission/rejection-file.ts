import { writeAtomic } from "../../lib/atomic-file.ts";
import type { RejectionFile } from "./rejections.ts";

/** `ROOT/rejected_pods.json`. */
export function rejectionFile(host: { readSmall(path: string): string }, rootDir: string): RejectionFile {
  const path = `${rootDir}/rejected_pods.json`;
  return { load: () => host.readSmall(path), save: (text) => writeAtomic(path, text) };
}
