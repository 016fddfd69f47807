import { agentOptions } from "./agent-options.ts";
import { loadConfiguration, problemLines } from "./load.ts";
import { type Parsed, parseOptions } from "./parse.ts";

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
