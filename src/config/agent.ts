import { type AgentOptions, agentOptions, optionNames, optionOf } from "./agent-options.ts";
import { loadConfiguration, problemLines } from "./load.ts";
import { flagDefault, type Parsed, parseOptions } from "./parse.ts";

/** The agent's own command line without any file: flags only, with the rules between options applied. */
export function parseAgentOptions(argv: readonly string[]): Parsed<typeof agentOptions> {
  const parsed = parseOptions(argv, agentOptions);
  const flags = { ...parsed, problems: [...parsed.problems, ...strayWords(parsed.words)] };
  const { values, problems } = loadConfiguration({ flags });
  return { ...parsed, values, problems: problemLines(problems) };
}

/** The agent takes no positional arguments: each is an unknown command. */
export function strayWords(words: readonly string[]): string[] {
  return words.map((word) => `unknown command "${word}"; see kubelet --help`);
}

/** Settings that a command chose itself, completed and judged like a command line. */
export function completeOptions(
  chosen: AgentOptions,
  given: ReadonlySet<string>,
): { readonly values: AgentOptions; readonly problems: readonly string[] } {
  const differs = optionNames.filter((name) => given.has(name) || chosen[name] !== flagDefault(optionOf(name)));
  const { values, problems } = loadConfiguration({ flags: { values: chosen, given: new Set(differs), problems: [] } });
  return { values, problems: problemLines(problems) };
}
