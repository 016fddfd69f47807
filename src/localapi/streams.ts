import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { PodEvent, PodSummary } from "../model/step.ts";
import type { AgentView } from "./agent-view.ts";

/** One line of the watch: new and changed pods, and the UIDs of removed ones. */
export interface PodChanges {
  readonly set: readonly PodSummary[];
  readonly gone: readonly string[];
}

/** Changes within this time are sent together, in milliseconds. */
const GATHER_MS = 100;

/** Remembers a change while nobody waits: a slow reader gets the newest state instead of a queue. */
class ChangeFlag {
  private isSet = false;
  private wake: (() => void) | undefined;

  constructor(view: Pick<AgentView, "onChange">, { signal }: Abortable) {
    const set = (): void => {
      this.isSet = true;
      this.wake?.();
    };
    view.onChange(set, { signal });
    signal.addEventListener("abort", set, { once: true });
  }

  async wait(): Promise<void> {
    if (!this.isSet) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    this.wake = undefined;
    this.isSet = false;
  }
}

/** Events after `since`, a JSON line each; with `watch` until the client disconnects. */
export async function* eventLines(
  view: AgentView,
  query: { since: number; watch: boolean },
  { signal }: Abortable,
): AsyncGenerator<string> {
  const changes = new ChangeFlag(view, { signal });
  let since = query.since;
  while (!signal.aborted) {
    const events: readonly PodEvent[] = view.events(since);
    since = events.reduce((last, event) => Math.max(last, event.sequence), since);
    if (events.length > 0) yield events.map((event) => `${JSON.stringify(event)}\n`).join("");
    if (!query.watch) return;
    await changes.wait();
  }
}

/** All pods, then their changes: a JSON line of `PodChanges` each, at most ten a second. */
export async function* podLines(
  deps: { view: AgentView; clock: Clock },
  { signal }: Abortable,
): AsyncGenerator<string> {
  const { view, clock } = deps;
  const changes = new ChangeFlag(view, { signal });
  const sent = new Map<string, string>();
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const { set, gone } = difference(sent, view.summaries());
    if (isFirst || set.length > 0 || gone.length > 0) yield `${JSON.stringify({ set, gone } satisfies PodChanges)}\n`;
    await changes.wait();
    if (!signal.aborted) await clock.sleep(GATHER_MS, { signal });
  }
}

/** The difference to what was sent last; updates `sent`. */
function difference(sent: Map<string, string>, pods: readonly PodSummary[]): PodChanges {
  const present = new Set(pods.map((pod) => pod.uid));
  const gone = [...sent.keys()].filter((uid) => !present.has(uid));
  for (const uid of gone) sent.delete(uid);
  const set = pods.filter((pod) => {
    const text = JSON.stringify(pod);
    if (sent.get(pod.uid) === text) return false;
    sent.set(pod.uid, text);
    return true;
  });
  return { set, gone };
}
