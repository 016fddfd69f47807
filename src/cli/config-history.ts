import { openStore } from "../adapters/host/dynamic-store.ts";
import { type DynamicReport, type HistoryEntry, sourceId, sourceName } from "../config/index.ts";
import { table } from "../lib/table.ts";
import { explained } from "./agent-client.ts";
import { command } from "./command.ts";
import { agentOrStore, storeOptions } from "./config-agent.ts";
import { formatOption, formatted, helpOption, print } from "./print.ts";

/** `kubelet config history`: the dynamic configurations that were applied here. */
export const configHistory = command({
  name: "config history",
  usage: "",
  summary: "List the dynamic configurations that were applied, with their outcome.",
  options: { ...storeOptions, ...formatOption, ...helpOption },
  words: { min: 0, max: 0 },
  async run(parsed, { out, clock }, { signal }) {
    const agent = await agentOrStore(parsed, { signal });
    const entries =
      agent === undefined
        ? await openStore(parsed.values.dynamicConfigDir, clock).history()
        : await agent.json<HistoryEntry[]>("/v1/config/history", { signal }).catch((error: unknown) => {
            throw explained(error);
          });
    const { output } = parsed.values;
    const text = output === "text" ? asTable(entries, out.color) : await formatted(entries, output);
    await print(out, text, { signal });
    return 0;
  },
});

function asTable(entries: readonly HistoryEntry[], color: boolean): string {
  if (entries.length === 0) return "No dynamic configuration was applied here.\n";
  const rows = entries.map(({ id, at, state, name, why = "" }) => [id, at, state, name, why]);
  return table(rows, { header: ["VERSION", "APPLIED", "STATE", "FROM", "WHY"], color });
}

/** The state of the dynamic configuration, for `config view`. */
export function dynamicLines(report: DynamicReport): string {
  const { state, assigned, active, lastKnownGood, error, trialLeftMs, followed } = report;
  const shown = (source: DynamicReport["active"]): string =>
    source === undefined ? "the local configuration" : `${sourceId(source)} from ${sourceName(source)}`;
  const left = trialLeftMs === undefined ? "" : ` (${Math.ceil(trialLeftMs / 1000)} s left)`;
  return [
    `\nDynamic configuration: ${state}${left}\n`,
    `  assigned         ${shown(assigned)}\n`,
    `  active           ${shown(active)}\n`,
    `  last known good  ${shown(lastKnownGood)}\n`,
    ...(error === undefined ? [] : [`  error            ${error}\n`]),
    ...(followed === undefined ? [] : [`  assigned by      ${followed.by}\n`]),
    ...(followed?.error === undefined ? [] : [`  sync error       ${followed.error}\n`]),
  ].join("");
}
