import type { OptionTable, Parsed } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { ProcessStreams } from "../lib/process-streams.ts";
import type { AgentLauncher } from "./launcher.ts";
import type { Output } from "./output.ts";

/** What every command is built from. */
export interface CliDeps {
  readonly out: Output;
  readonly err: Output;
  readonly clock: Clock;
  readonly launcher: AgentLauncher;
  /** Input and output as bytes. */
  readonly streams: ProcessStreams;
  /** The name of the program, for hints: `bin/kubelet` or `kubelet`. */
  readonly program: string;
}

/** A subcommand. `run` returns the exit code, and throws a `CliError` for what the user can fix. */
export interface Command {
  readonly name: string;
  /** What follows the name: `[-f] POD`. */
  readonly usage: string;
  readonly summary: string;
  readonly options: OptionTable;
  /** The options that its help shows, if not all. */
  readonly shownOptions?: OptionTable;
  /** Options that are loaded only if a flag is unknown otherwise. */
  moreOptions?(): Promise<OptionTable>;
  /** Commands below this one: `kubelet config view`. */
  readonly commands?: readonly Command[];
  /** Number of arguments beside the flags. */
  readonly words: { readonly min: number; readonly max: number };
  run(parsed: Parsed<OptionTable>, deps: CliDeps, options: Abortable): Promise<number>;
}

/** A command whose `run` sees its own options typed. */
export function command<Table extends OptionTable>(
  entry: Omit<Command, "options" | "run"> & {
    readonly options: Table;
    run(parsed: Parsed<Table>, deps: CliDeps, options: Abortable): Promise<number>;
  },
): Command {
  return entry as unknown as Command; // reason: `runCli` parses with the command's own table before it calls run
}
