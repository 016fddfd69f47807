import { DEFAULT_STATE_DIR } from "../adapters/embedded/layout.ts";
import { agentOptions, oneOf, option, text } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { AgentPlace } from "./agent-client.ts";
import { ReaderLeft } from "./cli-error.ts";
import type { Output } from "./output.ts";

/** `-h`, for every command. */
export const helpOption = { help: agentOptions.help } as const;

/** The options that locate the agent, for every command that calls one. */
export const placeOptions = {
  stateDir: option(text("DIR"), {
    flag: "state-dir",
    default: DEFAULT_STATE_DIR,
    topic: "Directories",
    help: "State directory of `kubelet up`.",
  }),
  rootDir: agentOptions.rootDir,
  localApiSocket: option(text("PATH"), {
    flag: "local-api-socket",
    default: "",
    topic: "Ports",
    help: "Socket of the agent; defaults to the one of `kubelet up`, then the one in --root-dir.",
  }),
} as const;

/** `-o`, for every command that prints data. */
export const formatOption = {
  output: option(oneOf("text", "json", "yaml"), {
    flag: "output",
    short: "o",
    default: "text",
    topic: "General",
    help: "Output format.",
  }),
} as const;

/** `-o`, for commands that print a document. */
export const documentOption = {
  output: option(oneOf("yaml", "json"), {
    flag: "output",
    short: "o",
    default: "yaml",
    topic: "General",
    help: "Output format.",
  }),
} as const;

/** `-c`, for commands about one container of a pod. */
export const containerOption = {
  container: option(text("NAME"), {
    flag: "container",
    short: "c",
    default: "",
    topic: "General",
    help: "Container name; required if the pod has several.",
  }),
} as const;

/** The location of the agent that a command line selects. */
export function placeOf(parsed: {
  readonly values: Omit<AgentPlace, "stateDirGiven">;
  readonly given: ReadonlySet<string>;
}): AgentPlace {
  return { ...parsed.values, stateDirGiven: parsed.given.has("stateDir") };
}

/** A value as JSON or YAML, ended by a newline. */
export async function formatted(value: unknown, format: "json" | "yaml"): Promise<string> {
  if (format === "json") return `${JSON.stringify(value, undefined, 2)}\n`;
  const { stringify } = await import("yaml");
  return stringify(value);
}

/** Prints, or throws `ReaderLeft`. */
export async function print(out: Output, content: string, { signal }: Abortable): Promise<void> {
  if (content !== "" && !(await out.send(content, { signal }))) throw new ReaderLeft();
}
