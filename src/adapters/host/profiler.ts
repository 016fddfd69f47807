import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { CodedError } from "../../lib/errors.ts";

/** A second profile while one is taken. */
export class ProfileError extends CodedError<"Busy"> {}

let isBusy = false;

/** A profile of this process over some time, as V8 writes it: JSON. One at a time; an abort ends it early. */
export async function takeProfile(
  clock: Clock,
  { kind, seconds }: { readonly kind: "cpu" | "heap"; readonly seconds: number },
  { signal }: Abortable,
): Promise<string> {
  if (isBusy) throw new ProfileError("Busy", "a profile is being taken");
  isBusy = true;
  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  try {
    if (kind === "cpu") {
      await session.post("Profiler.enable");
      await session.post("Profiler.start");
      await clock.sleep(seconds * 1000, { signal });
      return JSON.stringify((await session.post("Profiler.stop")).profile);
    }
    await session.post("HeapProfiler.startSampling");
    await clock.sleep(seconds * 1000, { signal });
    return JSON.stringify((await session.post("HeapProfiler.stopSampling")).profile);
  } finally {
    session.disconnect();
    isBusy = false;
  }
}
