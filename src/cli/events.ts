import { bool, option } from "../config/index.ts";
import { ago, type Cell, paint, table } from "../lib/table.ts";
import type { PodEvent } from "../model/step.ts";
import { explained, findAgent, socketCandidates } from "./agent-client.ts";
import { command } from "./command.ts";
import { formatOption, formatted, helpOption, placeOf, placeOptions, print } from "./print.ts";
import { timeOfDay } from "./time-of-day.ts";
import { detailWords } from "./words.ts";

export const events = command({
  name: "events",
  usage: "[-w] [--progress]",
  summary: "List events of the pods.",
  options: {
    watch: option(bool, { flag: "watch", short: "w", default: false, topic: "General", help: "Watch for new events." }),
    progress: option(bool, {
      flag: "progress",
      default: false,
      topic: "General",
      help: "With -w, also report the progress of image pulls, once a second.",
    }),
    ...formatOption,
    ...placeOptions,
    ...helpOption,
  },
  words: { min: 0, max: 0 },
  async run(parsed, { out, clock }, { signal }) {
    const { watch, progress, output } = parsed.values;
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    const lines = agent.lines<PodEvent>(`/v1/events?watch=${watch}&progress=${watch && progress}`, { signal });
    const gathered: PodEvent[] = [];
    try {
      for await (const event of lines) {
        if (!watch) gathered.push(event);
        else if (output === "text") await print(out, eventLine(event, out.color), { signal });
        else if (output === "json") await print(out, `${JSON.stringify(event)}\n`, { signal });
        else await print(out, `---\n${await formatted(event, "yaml")}`, { signal });
      }
    } catch (error) {
      throw explained(error);
    }
    if (watch) return 0;
    const how = { now: clock.now().wall, color: out.color };
    await print(out, output === "text" ? renderEvents(gathered, how) : await formatted(gathered, output), { signal });
    return 0;
  },
});

/** Events as a table, oldest first. */
export function renderEvents(list: readonly PodEvent[], { now, color }: { now: number; color: boolean }): string {
  if (list.length === 0) return "No events.\n";
  const rows = [...list]
    .sort((a, b) => a.last - b.last)
    .map((event): Cell[] => [
      ago(Math.max(0, now - event.last)),
      typeCell(event),
      event.reason,
      `${event.pod.namespace}/${event.pod.name}${event.container === undefined ? "" : ` ${event.container}`}`,
      event.message + timesWords(event),
    ]);
  return table(rows, { header: ["LAST SEEN", "TYPE", "REASON", "POD", "MESSAGE"], color });
}

/** One event as a line, for watching: columns cannot be aligned ahead. */
export function eventLine(event: PodEvent, color: boolean): string {
  const pod = `${event.pod.namespace}/${event.pod.name}`;
  const style = event.type === "Warning" ? "yellow" : "dim";
  const message = detailWords({ ...event, detail: event.message }).replaceAll(/\s+/g, " ");
  return `${timeOfDay(event.last)}  ${paint(event.type.padEnd(7), style, color)}  ${event.reason}  ${pod}  ${message}${timesWords(event)}\n`;
}

/** ` (3 times)`, or nothing for once. */
export function timesWords({ count }: { readonly count: number }): string {
  return count > 1 ? ` (${count} times)` : "";
}

/** Warnings stand out. */
export function typeCell(event: Pick<PodEvent, "type">): Cell {
  return { text: event.type, style: event.type === "Warning" ? "yellow" : "dim" };
}
