import { dirname } from "node:path";
import { writeAtomic } from "../lib/atomic-file.ts";
import type { RecordFiles } from "./records.ts";

/** File access of the records. */
export interface RecordHost {
  /** Returns an empty string if the file does not exist. */
  readSmall(path: string): string;
  makeDir(path: string, mode: number): Promise<void>;
}

/** Stores records as `ROOT/pods/UID/probes.json`, removed with the pod's directory. */
export function recordFiles(host: RecordHost, rootDir: string): RecordFiles {
  const path = (uid: string): string => `${rootDir}/pods/${uid}/probes.json`;
  return {
    load: (uid) => host.readSmall(path(uid)),
    save: async (uid, text) => {
      await host.makeDir(dirname(path(uid)), 0o750);
      // Not synced: after a power failure its containers are gone.
      await writeAtomic(path(uid), text, { sync: false });
    },
  };
}
