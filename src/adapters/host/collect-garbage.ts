import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

let collect: (() => void) | undefined;

/** Collects all garbage now. Takes some tens of milliseconds: only after a burst, when nothing is urgent. */
export function collectGarbage(): void {
  if (collect === undefined) {
    // The only way to it without a flag on the command line; contexts made later do not have it.
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as () => void; // reason: V8's own function of that name
    setFlagsFromString("--no-expose-gc");
  }
  collect();
}
