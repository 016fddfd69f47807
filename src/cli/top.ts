import type { UnixClient } from "../adapters/net/unix-client.ts";
import { bool, oneOf, option } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { NodeUsageReport } from "../model/node-usage.ts";
import { explained, findAgent, socketCandidates } from "./agent-client.ts";
import { type CliDeps, command } from "./command.ts";
import { cutLine } from "./cut-line.ts";
import { replaceFrame } from "./live-view.ts";
import { formatOption, formatted, helpOption, placeOf, placeOptions, print } from "./print.ts";
import { renderUsage, type UsageLayout } from "./render-usage.ts";
import { UsageHistory } from "./usage-history.ts";

/** Interval of the live view in milliseconds. */
const REFRESH_MS = 2000;
const topic = "General" as const;

export const top = command({
  name: "top",
  usage: "[--node | --containers] [--sort-by cpu|memory]",
  summary: "Show the usage of the node and its pods: live on a terminal, once elsewhere.",
  options: {
    node: option(bool, { flag: "node", default: false, topic, help: "Show the node only." }),
    containers: option(bool, { flag: "containers", default: false, topic, help: "Show the containers of each pod." }),
    sortBy: option(oneOf("cpu", "memory"), {
      flag: "sort-by",
      default: "cpu",
      topic,
      help: "Show the pods that use the most of it first.",
    }),
    ...formatOption,
    ...placeOptions,
    ...helpOption,
  },
  words: { min: 0, max: 0 },
  async run(parsed, deps, { signal }) {
    const { out } = deps;
    const { node: nodeOnly, containers, sortBy, output } = parsed.values;
    const layout: UsageLayout = { nodeOnly, containers, sortBy, color: out.color };
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    if (output === "text" && out.isTerminal) return watchUsage(agent, { ...deps, layout }, { signal });
    const report = await ask(agent, { signal });
    if (output === "text") {
      await print(out, `${renderUsage(report, new UsageHistory(), layout).join("\n")}\n`, { signal });
    } else {
      const { pods: _pods, ...node } = report;
      await print(out, await formatted(nodeOnly ? node : report, output), { signal });
    }
    return 0;
  },
});

function ask(agent: UnixClient, { signal }: Abortable): Promise<NodeUsageReport> {
  return agent.json<NodeUsageReport>("/v1/usage", { signal }).catch((error: unknown) => {
    throw explained(error);
  });
}

/** Redraws the table in place until it is interrupted. */
async function watchUsage(
  agent: UnixClient,
  { out, clock, layout }: CliDeps & { readonly layout: UsageLayout },
  { signal }: Abortable,
): Promise<never> {
  const history = new UsageHistory();
  let shown: readonly string[] = [];
  for (;;) {
    const report = await ask(agent, { signal });
    history.add(report);
    const { columns, rows } = out.size();
    const lines = renderUsage(report, history, layout)
      .slice(0, Math.max(3, rows - 1))
      .map((line) => cutLine(line, columns));
    await print(out, replaceFrame(shown, lines, columns), { signal });
    shown = lines;
    await clock.sleep(REFRESH_MS, { signal });
  }
}
