import type { UnixClient } from "../adapters/net/unix-client.ts";
import { bool, option } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { ago, type Cell, table } from "../lib/table.ts";
import type { PodChanges } from "../localapi/index.ts";
import type { PodSummary } from "../model/step.ts";
import { explained, findAgent, socketCandidates } from "./agent-client.ts";
import { type CliDeps, command } from "./command.ts";
import { replaceFrame } from "./live-view.ts";
import { PlainView } from "./plain-view.ts";
import { formatOption, formatted, helpOption, placeOf, placeOptions, print } from "./print.ts";
import { nowWords, stateStyle } from "./words.ts";

const HEADER = ["NAMESPACE", "NAME", "READY", "STATE", "RESTARTS", "IP", "AGE", "NOW"];

export const ps = command({
  name: "ps",
  usage: "[-w]",
  summary: "List the pods of the running agent.",
  options: {
    watch: option(bool, {
      flag: "watch",
      short: "w",
      default: false,
      topic: "General",
      help: "Watch for changes.",
    }),
    ...formatOption,
    ...placeOptions,
    ...helpOption,
  },
  words: { min: 0, max: 0 },
  async run(parsed, deps, { signal }) {
    const { out, clock } = deps;
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    if (parsed.values.watch) return watchPods(agent, { ...deps, format: parsed.values.output }, { signal });
    const pods = await agent.json<PodSummary[]>("/v1/pods", { signal }).catch((error: unknown) => {
      throw explained(error);
    });
    const format = parsed.values.output;
    if (format !== "text") await print(out, await formatted(pods, format), { signal });
    else await print(out, renderPods(pods, { now: clock.now().wall, color: out.color }), { signal });
    return 0;
  },
});

/** Redraws the table in place on a terminal; elsewhere a line, or a document, for each change. */
async function watchPods(
  agent: UnixClient,
  { out, clock, format }: CliDeps & { format: "text" | "json" | "yaml" },
  { signal }: Abortable,
): Promise<number> {
  const pods = new Map<string, PodSummary>();
  const plain = new PlainView();
  let shown: readonly string[] = [];
  const picture = (changes: PodChanges): string | Promise<string> => {
    if (format === "json") return `${JSON.stringify(changes)}\n`;
    if (format === "yaml") return formatted(changes, "yaml").then((text) => `---\n${text}`);
    const now = clock.now().wall;
    if (!out.isTerminal) return plain.pods([...pods.values()], now).join("");
    const { columns, rows } = out.size();
    const lines = renderPods([...pods.values()], { now, color: out.color })
      .trimEnd()
      .split("\n");
    const frame = replaceFrame(shown, lines.slice(0, rows - 1), columns);
    shown = lines.slice(0, rows - 1);
    return frame;
  };
  try {
    for await (const changes of agent.lines<PodChanges>("/v1/watch", { signal })) {
      for (const uid of changes.gone) pods.delete(uid);
      for (const pod of changes.set) pods.set(pod.uid, pod);
      await print(out, await picture(changes), { signal });
    }
  } catch (error) {
    throw explained(error);
  }
  return 0;
}

/** The pods as a table, by namespace and name. */
export function renderPods(pods: readonly PodSummary[], how: { now: number; color: boolean }): string {
  if (pods.length === 0) return "No pods.\n";
  const key = (pod: PodSummary): string => `${pod.namespace}/${pod.name}`;
  const sorted = [...pods].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  const rows = sorted.map((pod): Cell[] => [
    pod.namespace,
    pod.name,
    `${pod.readyContainers}/${pod.totalContainers}`,
    { text: pod.state, style: stateStyle(pod) },
    String(pod.restarts),
    pod.ip === "" ? "-" : pod.ip,
    ago(Math.max(0, how.now - (pod.startedAt ?? pod.seenAt))),
    { text: nowWords(pod, how.now), style: "dim" },
  ]);
  return table(rows, { header: HEADER, color: how.color });
}
