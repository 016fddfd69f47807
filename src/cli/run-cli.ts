import { AgentError } from "../adapters/net/unix-client.ts";
import {
  type ConfigInputs,
  deprecations,
  loadConfiguration,
  parseCommandLine,
  parseOptions,
  problemLines,
  readInputs,
} from "../config/index.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import { CodedError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { gitVersion, versionInfo } from "../lib/version.ts";
import { CliError, ReaderLeft } from "./cli-error.ts";
import type { CliDeps, Command } from "./command.ts";
import { commands } from "./commands.ts";
import { configReader } from "./config-reader.ts";
import { commandHelp, generalHelp } from "./help.ts";
import { print } from "./print.ts";

/** The exit code of a program that was ended by Ctrl-C. */
const INTERRUPTED = 130;

/**
 * Runs a command line. Returns the exit code; an error that the user can fix is one line on stderr and code 1.
 * Anything else that is thrown is a bug and left to the caller.
 */
export async function runCli(argv: readonly string[], deps: CliDeps, { signal }: Abortable): Promise<number> {
  try {
    const [first = "", ...rest] = argv;
    if (first === "" || first.startsWith("-")) return await runAgent(argv, deps, { signal });
    if (first === "help") return await runHelp(rest, deps, { signal });
    const entry = commands.find(({ name }) => name === first);
    if (entry === undefined) throw unknownCommand(first);
    return await runCommand(entry, rest, { deps, signal });
  } catch (error) {
    if (error instanceof ReaderLeft) return 0;
    if (isAborted(error, signal)) return deps.out.isBroken() ? 0 : INTERRUPTED;
    if (!(error instanceof CliError || error instanceof CodedError)) throw error;
    const code = error instanceof CliError ? error.exitCode : 1;
    const hint = error instanceof AgentError && error.code === "NoAgent" ? "; has it just stopped?" : "";
    await deps.err.send(`error: ${oneLine(error.message)}${hint}\n`, { signal }).catch(() => false);
    return code;
  }
}

async function runAgent(argv: readonly string[], deps: CliDeps, { signal }: Abortable): Promise<number> {
  const { parsed } = await parseCommandLine(argv);
  if (parsed.values["help"] === true) return say(generalHelp(commands), deps, { signal });
  const version = String(parsed.values["version"]);
  const asksVersion = /^(raw|1|[tT]|true|True|TRUE)$/.test(version);
  if (asksVersion) {
    refuse(parsed.problems, "kubelet --help");
    const answer = version === "raw" ? JSON.stringify(versionInfo()) : `Kubernetes ${gitVersion}`;
    return say(`${answer}\n`, deps, { signal });
  }
  const inputs = await readInputs(argv, configReader(deps), { signal });
  const loaded = loadConfiguration(inputs);
  refuse(problemLines(loaded.problems), "kubelet --help");
  for (const notice of deprecations(inputs.flags.given)) await deps.err.send(`${notice}\n`, { signal });
  const read = (abortable: Abortable): Promise<ConfigInputs> => readInputs(argv, configReader(deps), abortable);
  return deps.launcher.run(loaded.values, { signal, configuration: { inputs, loaded, read } });
}

async function runCommand(
  entry: Command,
  argv: readonly string[],
  { deps, signal }: Abortable & { deps: CliDeps },
): Promise<number> {
  const [first = "", ...rest] = argv;
  if (entry.commands !== undefined && !first.startsWith("-") && first !== "") {
    const below = entry.commands.find(({ name }) => name === `${entry.name} ${first}`);
    if (below === undefined) throw unknownCommand(`${entry.name} ${first}`, entry.commands);
    return runCommand(below, rest, { deps, signal });
  }
  let parsed = parseOptions(argv, entry.options);
  if (entry.moreOptions !== undefined && parsed.problems.some((problem) => problem.startsWith("unknown flag"))) {
    parsed = parseOptions(argv, { ...entry.options, ...(await entry.moreOptions()) });
  }
  if (parsed.values["help"] === true) return say(commandHelp(entry), deps, { signal });
  const { min, max } = entry.words;
  const problems = [...parsed.problems];
  if (parsed.words.length < min) problems.push(`kubelet ${entry.name} needs ${entry.usage}`);
  for (const word of parsed.words.slice(max)) problems.push(`unexpected word "${word}"`);
  refuse(problems, `kubelet ${entry.name} --help`);
  return entry.run(parsed, deps, { signal });
}

async function runHelp([name, below]: readonly string[], deps: CliDeps, { signal }: Abortable): Promise<number> {
  const top = commands.find((candidate) => candidate.name === name);
  const inner = top?.commands?.find((candidate) => candidate.name === `${name} ${below}`);
  const entry = inner ?? top;
  if (name !== undefined && entry === undefined) throw unknownCommand(name);
  return say(entry === undefined ? generalHelp(commands) : commandHelp(entry), deps, { signal });
}

async function say(text: string, { out }: CliDeps, { signal }: Abortable): Promise<number> {
  await print(out, text, { signal });
  return 0;
}

/** Throws all problems of a command line at once. */
function refuse(problems: readonly string[], help: string): void {
  if (problems.length > 0) throw new CliError(`${problems.join("\nerror: ")} (see ${help})`);
}

function unknownCommand(name: string, among: readonly Command[] = commands): CliError {
  const near = nearest(name, ["help", ...among.map((entry) => entry.name)], 1);
  const meant = near[0] === undefined ? "" : `; did you mean "${near[0]}"?`;
  return new CliError(`unknown command "${name}"${meant} (see kubelet --help)`);
}

/** Messages of others in one line; lists of problems keep their lines. */
function oneLine(message: string): string {
  return message.includes("\nerror: ") ? message : message.replaceAll(/\s*\n\s*/g, " ");
}
