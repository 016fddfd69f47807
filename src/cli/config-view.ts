import {
  agentOptions,
  bool,
  type ConfigReport,
  loadConfiguration,
  oldKubelets,
  option,
  type ReportedSetting,
  readFiles,
  reportSettings,
} from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { type Cell, table } from "../lib/table.ts";
import { explained, findAgent, socketCandidates } from "./agent-client.ts";
import { CliError } from "./cli-error.ts";
import { type CliDeps, command } from "./command.ts";
import { dynamicLines } from "./config-history.ts";

import { refuseProblems, tellWarnings } from "./config-load.ts";
import { configReader } from "./config-reader.ts";
import { formatOption, formatted, helpOption, placeOf, placeOptions, print } from "./print.ts";

const own = {
  all: option(bool, {
    flag: "all",
    short: "a",
    default: false,
    topic: "General",
    help: "Include settings that have their default.",
  }),
  running: option(bool, {
    flag: "running",
    short: "r",
    default: false,
    topic: "General",
    help: "Show the effective configuration of the running agent, and changes that require a restart.",
  }),
  stateDir: placeOptions.stateDir,
  ...formatOption,
  ...helpOption,
};

/** `kubelet config view`: the configuration under these flags, or that of the running agent. */
export const configView = command({
  name: "config view",
  usage: "[-a] [-r | FLAGS OF THE AGENT...]",
  summary: "Show settings with their origin; accepts all flags of the agent, such as --config.",
  options: { ...agentOptions, ...own },
  shownOptions: own,
  moreOptions: async () => (await oldKubelets()).flags,
  words: { min: 0, max: 0 },
  async run(parsed, deps, { signal }) {
    const { all, output, running } = parsed.values;
    let report: ConfigReport;
    if (running) {
      const strange = [...parsed.given].find((name) => !(name in own) && !(name in placeOptions));
      if (strange !== undefined) throw new CliError("--running must not be combined with flags of the agent");
      report = await askAgent(placeOf(parsed), { signal });
    } else report = await wouldBe(parsed, deps, { signal });
    const settings = report.settings.filter((setting) => all || setting.isGiven || setting.waits !== undefined);
    const text =
      output === "text"
        ? `${asTable(settings, deps.out.color)}${remarks(report)}`
        : await formatted(running ? { ...report, settings: settings.map(asData) } : settings.map(asData), output);
    await print(deps.out, text, { signal });
    return 0;
  },
});

async function wouldBe(
  parsed: Parameters<typeof configView.run>[0],
  deps: CliDeps,
  { signal }: Abortable,
): Promise<ConfigReport> {
  const isOld = [...parsed.given].some((name) => !(name in agentOptions) && !(name in own));
  const old = isOld ? await oldKubelets() : undefined;
  const loaded = loadConfiguration(await readFiles({ parsed, old }, configReader(deps), { signal }));
  refuseProblems(loaded);
  await tellWarnings(loaded, deps, { signal });
  return { settings: reportSettings(loaded), problems: [] };
}

async function askAgent(place: Parameters<typeof socketCandidates>[0], { signal }: Abortable): Promise<ConfigReport> {
  const agent = await findAgent(socketCandidates(place), { signal });
  return agent.json<ConfigReport>("/v1/config", { signal }).catch((error: unknown) => {
    throw explained(error);
  });
}

function asTable(settings: readonly ReportedSetting[], color: boolean): string {
  if (settings.length === 0) return "Every setting is at its default (see kubelet config view -a).\n";
  const rows = settings.map(({ field, flag, shown, places, effect, applies, waits }): Cell[] => {
    const note = effect === "planned" ? "not acted on yet" : effect === "none" ? "without effect" : applies;
    const waiting = waits === undefined ? undefined : `${waits.shown || "-"} waits for a ${waits.for}`;
    const style = waiting === undefined ? "dim" : "yellow";
    return [field ?? `--${flag}`, shown || "-", places.join(", "), { text: waiting ?? note, style }];
  });
  return table(rows, { header: ["SETTING", "VALUE", "FROM", "APPLIES"], color });
}

function remarks({ problems, dynamic }: ConfigReport): string {
  const wrong = problems.map((problem) => `  ${problem}\n`).join("");
  return `${wrong === "" ? "" : `\nThe changed configuration is not valid, so the one before is in force:\n${wrong}`}${
    dynamic === undefined ? "" : dynamicLines(dynamic)
  }`;
}

function asData({ field, flag, value, origin, keys, applies, effect, waits }: ReportedSetting): unknown {
  return {
    ...(field === undefined ? {} : { field }),
    ...(flag === undefined ? {} : { flag }),
    value,
    ...origin,
    ...(keys === undefined ? {} : { keys }),
    applies,
    actedOn: effect === undefined,
    ...(waits === undefined ? {} : { waits: { for: waits.for, value: waits.value } }),
  };
}
