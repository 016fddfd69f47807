import { bool, option, type ReloadOutcome } from "../config/index.ts";
import { command } from "./command.ts";
import { agentOrStore, askToDo, outcomeLines, storeOptions, withStore } from "./config-agent.ts";
import { helpOption, print } from "./print.ts";

/** `kubelet config rollback`: from the assigned dynamic configuration to the last known good one. */
export const configRollback = command({
  name: "config rollback",
  usage: "[--to-local]",
  summary: "Roll back the dynamic configuration to the last known good one.",
  options: {
    toLocal: option(bool, {
      flag: "to-local",
      default: false,
      topic: "Configuration",
      help: "Roll back to the agent's own files and flags, and discard the last known good one.",
    }),
    ...storeOptions,
    ...helpOption,
  },
  words: { min: 0, max: 0 },
  async run(parsed, deps, { signal }) {
    const { toLocal, dynamicConfigDir } = parsed.values;
    const agent = await agentOrStore(parsed, { signal });
    if (agent !== undefined) {
      const outcome = await askToDo<ReloadOutcome>(agent, `/v1/config/rollback?toLocal=${toLocal}`, { signal });
      await print(deps.out, outcomeLines(outcome), { signal });
      return 0;
    }
    await withStore(dynamicConfigDir, deps, async (dynamic) => {
      await dynamic.open({ signal });
      await dynamic.rollback({ toLocal }, { signal });
    });
    await print(deps.out, "Stored; takes effect when the agent starts.\n", { signal });
    return 0;
  },
});
