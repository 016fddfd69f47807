import { join, resolve } from "node:path";
import {
  absolutePath,
  agentOptions,
  isGiven,
  type LoadedConfiguration,
  loadConfiguration,
  notActedOn,
  type OptionName,
  type OptionTable,
  option,
  optionOf,
  type Parsed,
  problemLines,
  type ReadDeps,
  readFiles,
  text,
  unixEndpoint,
} from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
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
  cadvisorPort: _cadvisorPort,
  keepLocalImages: _keepLocalImages,
  initConfigDir: _initConfigDir,
  dynamicConfigDir: _dynamicConfigDir,
  configTrialDuration: _configTrialDuration,
  configWatch: _configWatch,
  apiserver: _apiserver,
  apiserverSocket: _apiserverSocket,
  apiserverKubeconfig: _apiserverKubeconfig,
  ...kept
} = agentOptions;

/** `up` decides the directories and the runtime; all other settings of the agent may be given as well. */
export const upOptions = {
  pods: option(text("DIR"), {
    flag: "pods",
    default: "",
    topic: "Pod sources",
    help: "File or directory of pod manifests.",
  }),
  stateDir: placeOptions.stateDir,
  runtimeEndpoint: option(text("SOCKET"), {
    flag: "runtime-endpoint",
    default: "",
    topic: "Container runtime",
    help: "Endpoint of the container runtime; defaults to a private containerd.",
    validate: (value) => (value === "" ? undefined : unixEndpoint(value)),
  }),
  // The read-only port has no authentication, so only for this machine unless asked for.
  address: { ...agentOptions.address, default: "127.0.0.1" },
  // Whoever can reach the main port could run commands in pods: only those with a certificate of --client-ca-file may.
  anonymousAuth: { ...agentOptions.anonymousAuth, default: false, legacyDefault: false },
  // On loopback, as the address says.
  cadvisorPort: { ...agentOptions.cadvisorPort, default: 4194 },
  // For this machine and its root only.
  apiserver: { ...agentOptions.apiserver, default: true },
  // Often there is no registry at all: an image that was imported could not be brought back.
  keepLocalImages: { ...agentOptions.keepLocalImages, default: true },
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

/** The options that `up` decides itself, whatever a configuration file says. */
const DECIDED = [
  ...(["staticPodPath", "rootDir", "podLogsDir", "localApiSocket", "containerRuntimeEndpoint"] as const),
  ...(["imageServiceEndpoint", "cgroupRoot", "runOnce", "initConfigDir", "dynamicConfigDir"] as const),
  ...(["apiserverSocket", "apiserverKubeconfig"] as const),
];

/** The whole plan of an `up`: everything that it makes lies under the state directory. Rejects with `CliError`. */
export async function planUp(
  parsed: Parsed<typeof upOptions>,
  reader: ReadDeps,
  { signal }: Abortable,
): Promise<UpOptions> {
  const { pods, stateDir, runtimeEndpoint, ...settings } = parsed.values;
  const state = resolve(stateDir);
  const inputs = await readFiles({ parsed: { ...parsed, words: [] }, old: undefined }, reader, { signal });
  const fromFiles = loadConfiguration(inputs);
  const isOpen = (name: OptionName): boolean => !isGivenIn(fromFiles, name);
  const decided = {
    staticPodPath: pods === "" ? "" : resolve(pods),
    rootDir: join(state, "kubelet"),
    podLogsDir: join(state, "log", "pods"),
    localApiSocket: join(state, "kubelet.sock"),
    apiserverSocket: join(state, "apiserver.sock"),
    apiserverKubeconfig: join(state, "kubeconfig"),
    containerRuntimeEndpoint: runtimeEndpoint,
    imageServiceEndpoint: "",
    cgroupRoot: "",
    runOnce: false,
    initConfigDir: "",
    dynamicConfigDir: "",
    ...(isOpen("certDir") && { certDir: join(state, "kubelet", "pki") }),
    // Whoever reaches the ports could read all and run commands in pods: only this machine, and only with a certificate.
    ...(isOpen("address") && { address: upOptions.address.default }),
    ...(isOpen("anonymousAuth") && { anonymousAuth: upOptions.anonymousAuth.default }),
    ...(isOpen("cadvisorPort") && { cadvisorPort: upOptions.cadvisorPort.default }),
    ...(isOpen("cadvisorPort") && { cadvisorPort: upOptions.cadvisorPort.default }),
    ...(isOpen("keepLocalImages") && { keepLocalImages: upOptions.keepLocalImages.default }),
    ...(isOpen("apiserver") && { apiserver: upOptions.apiserver.default }),
    // Tokens of pods must not open the main port, whose clients may do everything.
    ...(isOpen("webhookAuthentication") && { webhookAuthentication: false }),
    // There is no API server to review access; those who get in have a certificate of the client CA.
    ...(isOpen("authorizationMode") && { authorizationMode: "AlwaysAllow" as const }),
  };
  const given = new Set([...parsed.given, ...Object.keys(decided)]);
  const loaded = loadConfiguration({
    ...inputs,
    flags: { ...inputs.flags, values: { ...settings, ...decided }, given },
  });
  const problems = [...problemLines(loaded.problems)];
  if (settings.config !== "" && inputs.file === undefined && problems.length === 0) {
    problems.push(`--config must name a KubeletConfiguration file, and ${settings.config} is not one`);
  }
  const stateProblem = stateDirProblem(state);
  if (stateProblem !== undefined) problems.push(stateProblem);
  if (pods === "" && !loaded.values.apiserver) {
    problems.push("up needs --pods DIR, the directory of pod manifests to run, or the local API (--apiserver)");
  }
  if (problems.length > 0) throw new CliError(problems.join("\nerror: "));
  const ignored = DECIDED.filter((name) => isGivenIn(fromFiles, name)).map((name) => optionOf(name).field ?? name);
  return {
    stateDir: state,
    runtimeEndpoint: runtimeEndpoint === "" ? undefined : runtimeEndpoint,
    agent: loaded.values,
    notActedOn: notActedOn(loaded),
    warnings: [
      ...problemLines(loaded.warnings),
      ...ignored.map((name) => `${name}: ignored, \`kubelet up\` decides it`),
    ],
    containerLogsDir: join(state, "log", "containers"),
    logFile: join(state, "kubelet.log"),
  };
}

function isGivenIn({ provenance }: LoadedConfiguration, name: OptionName): boolean {
  const origin = provenance.get(name)?.origin;
  return origin !== undefined && isGiven(origin);
}

/** What `down` removes. Throws `CliError`. */
export function planDown(parsed: Parsed<typeof downOptions>): DownOptions {
  const { stateDir, runtimeEndpoint } = parsed.values;
  const state = resolve(stateDir);
  const problem = stateDirProblem(state);
  if (problem !== undefined) throw new CliError(problem);
  return { stateDir: state, runtimeEndpoint: runtimeEndpoint === "" ? undefined : runtimeEndpoint };
}

/** The problem of a state directory, beyond the check of the option itself. */
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
