import { dirname } from "node:path";
import { writeAtomic } from "../lib/atomic-file.ts";
import type { RecordFiles } from "./records.ts";

/** What the records need of the machine. */
export interface RecordHost {
  /** Empty when there is no such file. */
  readSmall(path: string): string;
  makeDir(path: string, mode: number): Promise<void>;
}

/** Records as `ROOT/pods/UID/probes.json`, removed with the pod's directory. */
export function recordFiles(host: RecordHost, rootDir: string): RecordFiles {
  const path = (uid: string): string => `${rootDir}/pods/${uid}/probes.json`;
  return {
    load: (uid) => host.readSmall(path(uid)),
    save: async (uid, text) => {
      await host.makeDir(dirname(path(uid)), 0o750);
      // Not synced: after a power cut there are no containers that it could be about.
      await writeAtomic(path(uid), text, { sync: false });
    },
  };
}
