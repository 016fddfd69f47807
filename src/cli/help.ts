import { agentOptions, optionHelp, wrap } from "../config/index.ts";
import type { Command } from "./command.ts";

const ABOUT = "The Kubernetes node agent: runs the pods of manifest files, a URL or a cluster, and keeps them running.";

/** `kubelet --help`. */
export function generalHelp(commands: readonly Command[]): string {
  const lines = [
    ...wrap(ABOUT, 80),
    "",
    "Usage:",
    "  kubelet [flags]            Run the agent",
    "  kubelet COMMAND [flags]    Run a command; see kubelet COMMAND --help",
    "",
    "Commands:",
    ...commandList(commands),
    "",
    "Flags:",
    ...optionHelp(agentOptions).slice(1),
  ];
  return `${lines.join("\n")}\n`;
}

/** `kubelet COMMAND --help`. */
export function commandHelp(entry: Command): string {
  const usage = `  kubelet ${entry.name}${entry.usage === "" ? "" : ` ${entry.usage}`}`;
  const options = optionHelp(entry.shownOptions ?? entry.options).slice(1);
  const below = entry.commands === undefined ? [] : ["", "Commands:", ...commandList(entry.commands)];
  const lines = [...wrap(entry.summary, 80), "", "Usage:", usage, ...below, "", "Flags:", ...options];
  return `${lines.join("\n")}\n`;
}

function commandList(commands: readonly Command[]): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return commands.flatMap(({ name, summary }) =>
    wrap(summary, 80 - width - 4).map((line, index) => `  ${(index === 0 ? name : "").padEnd(width)}  ${line}`),
  );
}
