import {
  agentOptions,
  bool,
  isGiven,
  type LoadedConfiguration,
  loadConfiguration,
  type OptionName,
  oldKubelets,
  option,
  optionNames,
  optionOf,
  readFiles,
  showOrigin,
} from "../config/index.ts";
import { type Cell, table } from "../lib/table.ts";
import { command } from "./command.ts";
import { encodedValueOf, nameOf, shownValueOf } from "./config-compare.ts";
import { refuseProblems, tellWarnings } from "./config-load.ts";
import { configReader } from "./config-reader.ts";
import { formatOption, formatted, helpOption, print } from "./print.ts";

const own = {
  all: option(bool, {
    flag: "all",
    short: "a",
    default: false,
    topic: "General",
    help: "Show the defaults too.",
  }),
  ...formatOption,
  ...helpOption,
};

/** `kubelet config view`: what the agent would run with under these flags. */
export const configView = command({
  name: "config view",
  usage: "[-a] [FLAGS OF THE AGENT...]",
  summary: "Show each setting and where it comes from; takes all flags of the agent, such as --config.",
  options: { ...agentOptions, ...own },
  shownOptions: own,
  moreOptions: async () => (await oldKubelets()).flags,
  words: { min: 0, max: 0 },
  async run(parsed, deps, { signal }) {
    const isOld = [...parsed.given].some((name) => !(name in agentOptions) && !(name in own));
    const old = isOld ? await oldKubelets() : undefined;
    const loaded = loadConfiguration(await readFiles({ parsed, old }, configReader(deps), { signal }));
    refuseProblems(loaded);
    await tellWarnings(loaded, deps, { signal });
    const { all, output } = parsed.values;
    const names = optionNames.filter((name) => name !== "help" && (all || isGivenIn(loaded, name)));
    const text =
      output === "text" ? asTable(loaded, names, deps.out.color) : await formatted(asList(loaded, names), output);
    await print(deps.out, text, { signal });
    return 0;
  },
});

function isGivenIn({ provenance }: LoadedConfiguration, name: OptionName): boolean {
  const found = provenance.get(name);
  return found !== undefined && (isGiven(found.origin) || found.origin.from === "derived" || hasGivenPart(found));
}

function hasGivenPart({ parts }: { parts?: ReadonlyMap<string, Parameters<typeof isGiven>[0]> }): boolean {
  return [...(parts?.values() ?? [])].some(isGiven);
}

function asTable({ values, provenance }: LoadedConfiguration, names: readonly OptionName[], color: boolean): string {
  if (names.length === 0) return "Every setting is at its default (see kubelet config view -a).\n";
  const rows = names.map((name): Cell[] => {
    const found = provenance.get(name);
    const places = new Set([...(found?.parts?.values() ?? [])].map(showOrigin));
    if (places.size === 0 && found !== undefined) places.add(showOrigin(found.origin));
    const { effect, applies } = optionOf(name);
    const note = effect === "planned" ? "not acted on yet" : effect === "none" ? "without effect" : applies;
    return [nameOf(name), shownValueOf(name, values) || "-", [...places].join(", "), { text: note, style: "dim" }];
  });
  return table(rows, { header: ["SETTING", "VALUE", "FROM", "APPLIES"], color });
}

function asList({ values, provenance }: LoadedConfiguration, names: readonly OptionName[]): unknown {
  return names.map((name) => {
    const { field, flag, applies, effect } = optionOf(name);
    const found = provenance.get(name);
    return {
      ...(field === undefined ? {} : { field }),
      ...(flag === undefined ? {} : { flag }),
      value: encodedValueOf(name, values),
      ...found?.origin,
      ...(found?.parts === undefined ? {} : { keys: Object.fromEntries(found.parts) }),
      ...{ applies, actedOn: effect === undefined },
    };
  });
}
