import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { Wakes } from "../lib/wakes.ts";
import type { OverviewLine, PageHello } from "../model/page-lines.ts";
import type { PageDeps } from "./page-deps.ts";
import { SentPods } from "./sent-pods.ts";
import { SentUsage } from "./sent-usage.ts";
import { UsageTurns } from "./usage-turns.ts";

/** Changes within this time are sent together, in milliseconds. */
export const GATHER_MS = 250;
/** A client connects again after this time in milliseconds: its access is checked anew. */
export const LONGEST_MS = 10 * 60_000;
/** Of the events before the stream, so many are sent. */
const EARLIER_EVENTS = 300;

type Deps = Pick<PageDeps, "clock" | "view" | "usage" | "history">;

/** The whole node, then its changes: a JSON line of `OverviewLine` each, no faster than the client reads. */
export async function* overviewLines(deps: Deps, hello: PageHello, { signal }: Abortable): AsyncGenerator<string> {
  const { clock, view } = deps;
  const scope = new AbortScope([signal], { clock, ms: LONGEST_MS });
  try {
    const wakes = new Wakes(clock);
    const pods = new SentPods(view);
    const sent = new SentUsage();
    const showsPods = hello.sections.includes("pods");
    const showsUsage = hello.sections.includes("usage");
    const turns = new UsageTurns(deps, { isShown: showsUsage });
    let since = 0;
    if (showsPods) {
      view.onChange((uid) => {
        pods.changed(uid);
        wakes.wake();
      }, scope);
    }
    let line: OverviewLine = { hello, ...(showsUsage && { history: deps.history.report() }) };
    while (!scope.signal.aborted) {
      if (showsPods) {
        const news = view.events(since);
        const events = since === 0 ? news.slice(-EARLIER_EVENTS) : news;
        since = news.reduce((last, { sequence }) => Math.max(last, sequence), since);
        const changes = pods.next();
        line = { ...line, ...(changes && { pods: changes }), ...(events.length > 0 && { events }) };
      }
      // What is known goes first: a sample takes a while.
      if (Object.keys(line).length > 0) yield `${JSON.stringify(line)}\n`;
      const report = await turns.next(scope);
      if (report !== undefined) yield `${JSON.stringify({ usage: sent.next(report) } satisfies OverviewLine)}\n`;
      await wakes.sleep(turns.waitMs(), scope.signal);
      line = {};
      if (turns.waitMs() === 0) pods.audit();
      else if (!scope.signal.aborted) await quietSleep(clock, Math.min(GATHER_MS, turns.waitMs()), scope);
    }
  } finally {
    scope.abort();
    scope.dispose();
  }
}

/** Sleeps without an error at the abort. */
export async function quietSleep(clock: Clock, ms: number, { signal }: Abortable): Promise<void> {
  await clock.sleep(ms, { signal }).catch(() => undefined);
}
