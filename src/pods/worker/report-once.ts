import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { DesiredPods } from "../desired.ts";
import type { AgentView } from "../status/view.ts";
import { runOnce } from "./run-once.ts";

/** Milliseconds that pods may take, and how often a step may fail. */
const LIMITS = { limitMs: 300_000, retries: 3 };

export interface ReportOnceDeps {
  readonly clock: Clock;
  readonly desired: Pick<DesiredPods, "allSourcesReady">;
  readonly view: Pick<AgentView, "summaries" | "explain" | "onChange">;
  readonly out: { send(text: string, options: Abortable): Promise<boolean> };
}

/** Waits for the outcome of each pod, and prints it; true if all run or succeeded. */
export async function reportOnce({ clock, desired, view, out }: ReportOnceDeps, options: Abortable): Promise<boolean> {
  const results = await runOnce(
    {
      clock,
      sourcesReady: () => desired.allSourcesReady,
      pods: () => view.summaries().flatMap(({ uid }) => view.explain(uid) ?? []),
      onChange: (fn, listening) => view.onChange(fn, listening),
    },
    LIMITS,
    options,
  );
  for (const { namespace, name, ok, outcome } of results) {
    const where = namespace === "" ? name : `${namespace}/${name}`;
    await out.send(`${ok ? "ok    " : "FAILED"}  ${where}  ${outcome}\n`, options);
  }
  if (results.length === 0) await out.send("no pods to run\n", options);
  return results.every(({ ok }) => ok);
}
