import { type Abortable, AbortScope } from "../lib/abort.ts";
import { Wakes } from "../lib/wakes.ts";
import type { PageHello, PodLine, ProbeLine } from "../model/page-lines.ts";
import type { PodExplanation } from "../model/step.ts";
import { GATHER_MS, LONGEST_MS, quietSleep } from "./overview-stream.ts";
import type { PageDeps } from "./page-deps.ts";
import { probeLines } from "./probe-lines.ts";
import { UsageTurns } from "./usage-turns.ts";

type Deps = Pick<PageDeps, "clock" | "view" | "usage" | "details" | "streams" | "probes" | "history">;

/** One pod, then its changes: a JSON line of `PodLine` each, until it is removed. */
export async function* podLines(
  deps: Deps,
  { uid, hello }: { readonly uid: string; readonly hello: PageHello },
  { signal }: Abortable,
): AsyncGenerator<string> {
  const { clock, view } = deps;
  const scope = new AbortScope([signal], { clock, ms: LONGEST_MS });
  const wakes = new Wakes(clock);
  const turns = new UsageTurns(deps, { isShown: hello.sections.includes("usage") });
  view.onChange((changed) => {
    if (changed === uid) wakes.wake();
  }, scope);
  const [sentPod, sentProbes] = [new Sent<PodExplanation>(), new Sent<readonly ProbeLine[]>()];
  const history = hello.sections.includes("usage") ? deps.history.ofPod(uid) : undefined;
  let line: PodLine = { hello, ...(history && { history }) };
  try {
    while (!scope.signal.aborted) {
      const pod = view.explain(uid);
      if (pod === undefined) {
        yield `${JSON.stringify({ ...line, gone: true } satisfies PodLine)}\n`;
        return;
      }
      if (sentPod.isNews(pod)) line = { ...line, pod };
      const spec = deps.streams.podOf(uid);
      const probes = spec === undefined ? [] : probeLines(spec, deps.probes(uid));
      if (sentProbes.isNews(probes)) line = { ...line, probes };
      const usage = (await turns.next(scope))?.pods.find((one) => one.uid === uid);
      if (usage !== undefined) line = { ...line, usage, details: deps.details(uid) };
      if (Object.keys(line).length > 0) yield `${JSON.stringify(line)}\n`;
      line = {};
      await wakes.sleep(turns.waitMs(), scope.signal);
      if (!scope.signal.aborted) await quietSleep(clock, Math.min(GATHER_MS, turns.waitMs()), scope);
    }
  } finally {
    scope.abort();
    scope.dispose();
  }
}

/** What was sent last. */
class Sent<T> {
  private text = "";

  isNews(value: T): boolean {
    const text = JSON.stringify(value);
    const isNews = text !== this.text;
    this.text = text;
    return isNews;
  }
}
