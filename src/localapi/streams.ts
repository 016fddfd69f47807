import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { PodEvent, PodSummary, StepProgress } from "../model/step.ts";
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

/** Which events a reader gets; `progress` adds those of running pulls, which are not kept. */
export interface EventQuery {
  readonly since: number;
  readonly watch: boolean;
  readonly progress: boolean;
}

/** Events after `since`, a JSON line each; with `watch` until the client disconnects. */
export async function* eventLines(
  { view, clock }: { view: AgentView; clock: Clock },
  query: EventQuery,
  { signal }: Abortable,
): AsyncGenerator<string> {
  const changes = new ChangeFlag(view, { signal });
  const pulls = new PullEvents({ view, clock });
  let since = query.since;
  while (!signal.aborted) {
    const events: readonly PodEvent[] = view.events(since);
    since = events.reduce((last, event) => Math.max(last, event.sequence), since);
    const all = query.progress ? [...events, ...pulls.changed(since)] : events;
    if (all.length > 0) yield all.map((event) => `${JSON.stringify(event)}\n`).join("");
    if (!query.watch) return;
    await changes.wait();
  }
}

/** The running pulls as passing events, each whenever its progress is new. */
class PullEvents {
  private sent = new Map<string, StepProgress>();

  constructor(private readonly deps: { view: Pick<AgentView, "summaries">; clock: Clock }) {}

  /** The events of pulls that went on since the last call; they have the sequence of the last kept event. */
  changed(sequence: number): readonly PodEvent[] {
    const { view, clock } = this.deps;
    const running = view.summaries().flatMap(({ uid, name, namespace, step }) => {
      const pod = { uid, name, namespace };
      return step?.progress === undefined ? [] : [{ pod, step, progress: step.progress }];
    });
    const news = running.filter(({ pod, progress }) => this.sent.get(pod.uid) !== progress);
    this.sent = new Map(running.map(({ pod, progress }) => [pod.uid, progress]));
    return news.map(({ pod, step, progress }) => ({
      sequence,
      type: "Normal",
      reason: "PullProgress",
      message: step.detail,
      pod,
      ...(step.container === undefined ? {} : { container: step.container }),
      count: 1,
      first: step.since,
      last: clock.now().wall,
      progress,
    }));
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
