import { encodeConfiguration, encodeFlags, isGiven, type LoadedConfiguration } from "../config/index.ts";
import { CliError } from "./cli-error.ts";
import { command } from "./command.ts";
import { defaultValues, differences } from "./config-compare.ts";
import { loadArguments, refuseProblems, tellWarnings } from "./config-load.ts";
import { documentOption, formatted, helpOption, print } from "./print.ts";

/** Flags that only locate the old configuration. */
const SOURCES = new Set(["config", "configDir", "initConfigDir", "strictConfig", "configWatch"]);

/** `kubelet config migrate OLD` or `kubelet config migrate -- FLAGS`. */
export const configMigrate = command({
  name: "config migrate",
  usage: "[OLD] [-- FLAGS...]",
  summary: "Convert a configuration file or the flags of an older kubelet to the current KubeletConfiguration.",
  options: { ...documentOption, ...helpOption },
  words: { min: 0, max: 1000 },
  async run({ values, words }, deps, { signal }) {
    const [first = "", ...rest] = words;
    if (first === "") throw new CliError("kubelet config migrate needs a file, or flags after --");
    const argv = first.startsWith("-") ? words : [`--config=${first}`, ...rest];
    const loaded = await loadArguments(argv, deps, { signal });
    refuseProblems(loaded);
    await tellWarnings(loaded, deps, { signal });
    const { document, flags } = migrated(loaded);
    const comments = flags.map((flag) => `# stays on the command line: ${flag}\n`);
    const text = await formatted(document, values.output);
    await print(deps.out, values.output === "yaml" ? comments.join("") + text : text, { signal });
    return 0;
  },
});

/** The settings as an equivalent file of the current version, and the flags that have no field. */
export function migrated({ values, provenance }: LoadedConfiguration): {
  readonly document: Record<string, unknown>;
  readonly flags: readonly string[];
} {
  const changed = new Set<string>(differences(values, defaultValues()));
  const document = encodeConfiguration(values, { only: (name) => changed.has(name) });
  // An empty map would mean the default thresholds; an old command line without any meant none.
  if (Object.keys(values.evictionHard).length === 0) document["evictionHard"] = {};
  const flags = encodeFlags(values, (name) => {
    const found = provenance.get(name);
    return found !== undefined && isGiven(found.origin) && !SOURCES.has(name);
  });
  return { document, flags };
}
