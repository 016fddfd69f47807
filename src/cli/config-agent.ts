import { documentParser, openStore } from "../adapters/host/dynamic-store.ts";
import type { UnixClient } from "../adapters/net/unix-client.ts";
import {
  agentOptions,
  DynamicConfiguration,
  loadConfiguration,
  type OptionName,
  oldKubelets,
  optionOf,
  problemLines,
  type ReloadOutcome,
} from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { silent } from "../lib/log.ts";
import { explained, findAgent, socketCandidates } from "./agent-client.ts";
import { CliError } from "./cli-error.ts";
import type { CliDeps } from "./command.ts";
import { placeOf, placeOptions } from "./print.ts";

/** The options that locate the agent or its store. */
export const storeOptions = { ...placeOptions, dynamicConfigDir: agentOptions.dynamicConfigDir } as const;

interface Place {
  readonly values: { stateDir: string; rootDir: string; localApiSocket: string; dynamicConfigDir: string };
  readonly given: ReadonlySet<string>;
}

/** The running agent; undefined if there is none and the user named the directory of its store. */
export async function agentOrStore(place: Place, { signal }: Abortable): Promise<UnixClient | undefined> {
  try {
    return await findAgent(socketCandidates(placeOf(place)), { signal });
  } catch (error) {
    if (!(error instanceof CliError) || !error.message.startsWith("no agent is running")) throw error;
    if (place.values.dynamicConfigDir !== "") return undefined;
    throw new CliError(
      `${error.message}; to change the configuration for its next start, specify its --dynamic-config-dir`,
    );
  }
}

/** Sends a command to the agent; its refusal is an error for the user. */
export async function askToDo<T>(agent: UnixClient, path: string, { signal }: Abortable): Promise<T> {
  return agent.json<T>(path, { signal, method: "POST" }).catch((error: unknown) => {
    throw explained(error);
  });
}

/** Locks the store and works on it while no agent runs. */
export async function withStore<T>(
  directory: string,
  { clock, launcher }: CliDeps,
  work: (dynamic: DynamicConfiguration) => Promise<T>,
): Promise<T> {
  const release = await launcher.lockConfigStore(directory);
  try {
    const old = await oldKubelets();
    const nothing = { applied: [], restart: [], reload: [], problems: [], warnings: [] };
    const dynamic = new DynamicConfiguration({
      store: openStore(directory, clock),
      clock,
      log: silent,
      parse: documentParser(clock),
      event: () => undefined,
      judge: (file) => {
        const flags = { values: {}, given: new Set<string>(), problems: [] };
        return problemLines(loadConfiguration({ flags, file, fileRole: "dynamic", old }).problems);
      },
      use: async () => nothing,
      isWhole: () => false,
      health: async () => undefined,
      trialMs: () => agentOptions.configTrialDuration.default,
    });
    return await work(dynamic);
  } finally {
    release();
  }
}

/** The outcome of a change, as lines. */
export function outcomeLines({ applied, restart, warnings }: ReloadOutcome): string {
  const names = (options: readonly OptionName[]): string =>
    options.map((name) => optionOf(name).field ?? `--${optionOf(name).flag}`).join(", ");
  return [
    ...warnings.map((warning) => `warning: ${warning}\n`),
    applied.length === 0 ? "No setting changed.\n" : `In force now: ${names(applied)}\n`,
    ...(restart.length === 0 ? [] : [`With the next start of the agent: ${names(restart)}\n`]),
  ].join("");
}
