import { resolve } from "node:path";
import { manifestFiles } from "../adapters/host/manifest-files.ts";
import type { ReloadOutcome } from "../config/index.ts";
import { CliError } from "./cli-error.ts";
import { command } from "./command.ts";
import { agentOrStore, askToDo, outcomeLines, storeOptions, withStore } from "./config-agent.ts";
import { helpOption, print } from "./print.ts";

const MOST_BYTES = 10 * 1024 * 1024;

/** `kubelet config apply [FILE]`: applies a file as the dynamic configuration, or reloads the files as SIGHUP does. */
export const configApply = command({
  name: "config apply",
  usage: "[FILE]",
  summary:
    "Apply a file as the dynamic configuration, on trial; without FILE, reload the agent's own configuration files.",
  options: { ...storeOptions, ...helpOption },
  words: { min: 0, max: 1 },
  async run(parsed, deps, { signal }) {
    const [word] = parsed.words;
    const agent = await agentOrStore(parsed, { signal });
    if (agent !== undefined) {
      const path =
        word === undefined ? "/v1/config/reload" : `/v1/config/apply?${new URLSearchParams({ file: resolve(word) })}`;
      await print(deps.out, outcomeLines(await askToDo<ReloadOutcome>(agent, path, { signal })), { signal });
      return 0;
    }
    if (word === undefined) throw new CliError("no running agent to reload; specify a FILE");
    const file = resolve(word);
    const text = await manifestFiles.read(file, { signal, maxBytes: MOST_BYTES }).catch((error: unknown) => {
      throw new CliError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    });
    await withStore(parsed.values.dynamicConfigDir, deps, async (dynamic) => {
      await dynamic.open({ signal });
      await dynamic.apply(text, file, { signal });
    });
    await print(deps.out, "Stored; takes effect, on trial, when the agent starts.\n", { signal });
    return 0;
  },
});
