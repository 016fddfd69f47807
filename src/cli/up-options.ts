import { join, resolve } from "node:path";
import {
  type AgentOptions,
  absolutePath,
  agentOptions,
  completeOptions,
  type OptionTable,
  option,
  type Parsed,
  text,
  unixEndpoint,
} from "../config/index.ts";
import { CliError } from "./cli-error.ts";
import type { DownOptions, UpOptions } from "./launcher.ts";
import { placeOptions } from "./print.ts";

const {
  staticPodPath: _path,
  rootDir: _root,
  podLogsDir: _logs,
  localApiSocket: _socket,
  containerRuntimeEndpoint: _runtime,
  imageServiceEndpoint: _images,
  cgroupRoot: _cgroup,
  runOnce: _once,
  version: _version,
  address: _address,
  anonymousAuth: _anonymousAuth,
  config: _config,
  configDir: _configDir,
  initConfigDir: _initConfigDir,
  dynamicConfigDir: _dynamicConfigDir,
  configTrialDuration: _configTrialDuration,
  configWatch: _configWatch,
  strictConfig: _strictConfig,
  ...kept
} = agentOptions;

/** `up` decides the directories and the runtime; all other settings of the agent may be given as well. */
export const upOptions = {
  pods: option(text("DIR"), {
    flag: "pods",
    default: "",
    topic: "Pod sources",
    help: "File or directory of pod manifests to run.",
  }),
  stateDir: placeOptions.stateDir,
  runtimeEndpoint: option(text("SOCKET"), {
    flag: "runtime-endpoint",
    default: "",
    topic: "Container runtime",
    help: "Use this runtime instead of a private containerd.",
    validate: (value) => (value === "" ? undefined : unixEndpoint(value)),
  }),
  // The read-only port has no authentication, so only for this machine unless asked for.
  address: { ...agentOptions.address, default: "127.0.0.1" },
  // Whoever can reach the main port could run commands in pods: only those with a certificate of --client-ca-file may.
  anonymousAuth: { ...agentOptions.anonymousAuth, default: false, legacyDefault: false },
  ...kept,
} as const;

/** What the help of `up` shows: the settings that are acted on. */
export const shownUpOptions: OptionTable = Object.fromEntries(
  Object.entries<OptionTable[string]>(upOptions).filter(([, { effect }]) => effect === undefined),
);

export const downOptions = {
  stateDir: upOptions.stateDir,
  runtimeEndpoint: upOptions.runtimeEndpoint,
  help: agentOptions.help,
} as const;

/** The whole plan of an `up`: everything that it makes lies under the state directory. Throws `CliError`. */
export function planUp(parsed: Parsed<typeof upOptions>): UpOptions {
  const { pods, stateDir, runtimeEndpoint, ...settings } = parsed.values;
  const state = resolve(stateDir);
  const agent: AgentOptions = {
    ...settings,
    staticPodPath: pods === "" ? "" : resolve(pods),
    rootDir: join(state, "kubelet"),
    ...(parsed.given.has("certDir") ? {} : { certDir: join(state, "kubelet", "pki") }),
    podLogsDir: join(state, "log", "pods"),
    localApiSocket: join(state, "kubelet.sock"),
    containerRuntimeEndpoint: runtimeEndpoint,
    imageServiceEndpoint: "",
    cgroupRoot: "",
    runOnce: false,
    version: agentOptions.version.default,
    ...{ config: "", configDir: "", initConfigDir: "", dynamicConfigDir: "", strictConfig: false },
    configTrialDuration: agentOptions.configTrialDuration.default,
    configWatch: agentOptions.configWatch.default,
  };
  const whole = completeOptions(agent, parsed.given);
  const problems = [...whole.problems];
  const table: OptionTable = upOptions;
  const planned = [...parsed.given].filter((name) => table[name]?.effect === "planned");
  const stateProblem = stateDirProblem(state);
  if (stateProblem !== undefined) problems.push(stateProblem);
  if (pods === "") problems.push("up needs --pods DIR, the directory of pod manifests to run");
  if (problems.length > 0) throw new CliError(problems.join("; "));
  return {
    stateDir: state,
    runtimeEndpoint: runtimeEndpoint === "" ? undefined : runtimeEndpoint,
    agent: whole.values,
    notActedOn: planned.map((name) => `--${table[name]?.flag}`),
    containerLogsDir: join(state, "log", "containers"),
    logFile: join(state, "kubelet.log"),
  };
}

/** What `down` removes. Throws `CliError`. */
export function planDown(parsed: Parsed<typeof downOptions>): DownOptions {
  const { stateDir, runtimeEndpoint } = parsed.values;
  const state = resolve(stateDir);
  const problem = stateDirProblem(state);
  if (problem !== undefined) throw new CliError(problem);
  return { stateDir: state, runtimeEndpoint: runtimeEndpoint === "" ? undefined : runtimeEndpoint };
}

/** What is wrong with a state directory, beyond what the option itself says. */
function stateDirProblem(stateDir: string): string | undefined {
  if (
    stateDir === "/" ||
    /^\/(bin|boot|dev|etc|home|lib|proc|root|run|sbin|sys|tmp|usr|var|var\/lib|var\/log)$/.test(stateDir)
  ) {
    return `${stateDir} belongs to the system; choose a directory of its own, such as ${placeOptions.stateDir.default}`;
  }
  const problem = absolutePath(stateDir);
  return problem === undefined ? undefined : `state directory ${stateDir} ${problem}`;
}
