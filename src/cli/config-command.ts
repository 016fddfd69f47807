import { CliError } from "./cli-error.ts";
import { command } from "./command.ts";
import { configApply } from "./config-apply.ts";
import { configDefaults } from "./config-defaults.ts";
import { configDiff } from "./config-diff.ts";
import { configHistory } from "./config-history.ts";
import { configMigrate } from "./config-migrate.ts";
import { configRollback } from "./config-rollback.ts";
import { configValidate } from "./config-validate.ts";
import { configView } from "./config-view.ts";
import { helpOption } from "./print.ts";

const commands = [
  ...[configView, configValidate, configDefaults, configDiff, configMigrate],
  ...[configApply, configRollback, configHistory],
];

/** The commands about the agent's configuration. */
export const config = {
  ...command({
    name: "config",
    usage: "COMMAND",
    summary: "View, validate, compare, change and migrate the configuration of the agent.",
    options: helpOption,
    words: { min: 0, max: 0 },
    async run() {
      const names = commands.map(({ name }) => name.replace("config ", "")).join(", ");
      throw new CliError(`kubelet config needs one of ${names} (see kubelet config --help)`);
    },
  }),
  commands,
};
