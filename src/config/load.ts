import { type AgentOptions, type OptionName, optionNames, optionOf } from "./agent-options.ts";
import { Assembly } from "./assembly.ts";
import { contradictions } from "./between.ts";
import { type ConfigProblem, formatConfigProblem, shownIfPublic } from "./config-problem.ts";
import { API_VERSION, type ConfigDocument, headProblem } from "./document.ts";
import { isGateOn, judgeGates } from "./feature-gates.ts";
import type { OldKubelets } from "./old.ts";
import { isGiven, type Origin, type Provenance } from "./origin.ts";
import { topologyOptions } from "./rules-fields.ts";

/** All that a configuration is made from; nothing is read here. */
export interface ConfigInputs {
  /** The command line as `parseOptions` read it, with the table of the old flags where it has any. */
  readonly flags: {
    readonly values: Readonly<Record<string, unknown>>;
    readonly given: ReadonlySet<string>;
    readonly problems: readonly string[];
  };
  /** The file of `--config`, or the dynamic configuration in its place. */
  readonly file?: ConfigDocument | undefined;
  readonly fileRole?: "file" | "dynamic";
  /** As in v1.9: the file replaces every flag that is a field. */
  readonly replacesFlags?: boolean;
  /** In the order in which they are merged. */
  readonly dropIns?: readonly ConfigDocument[];
  /** What went wrong before: files that cannot be read or parsed. */
  readonly problems?: readonly ConfigProblem[];
  readonly warnings?: readonly ConfigProblem[];
  /** The files and directories that were read, whether they exist or not. */
  readonly places?: readonly string[];
  /** The older kubelets, where the inputs speak of them. */
  readonly old?: OldKubelets | undefined;
}

/** The outcome. `values` are complete but only to be used without problems. */
export interface LoadedConfiguration {
  readonly values: AgentOptions;
  readonly provenance: ReadonlyMap<OptionName, Provenance>;
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/** Puts a configuration together and judges it as a whole: flags over drop-ins over file over defaults. Pure. */
export function loadConfiguration(inputs: ConfigInputs): LoadedConfiguration {
  const { flags, file, dropIns = [], old } = inputs;
  const assembly = new Assembly(file === undefined ? "no file" : "file");
  assembly.problems.push(...flags.problems.map(asProblem), ...(inputs.problems ?? []));
  assembly.warnings.push(...(inputs.warnings ?? []));
  if (file !== undefined) {
    const isOld = isOldVersion(file, old);
    if (accept(assembly, file, isOld ? (old?.versions ?? []) : [API_VERSION])) {
      assembly.file(file, inputs.fileRole ?? "file", old && { language: old, isSpoken: isOld });
    }
  }
  for (const document of dropIns) if (accept(assembly, document, [API_VERSION])) assembly.dropIn(document);
  applyFlags(assembly, inputs);
  settle(assembly);
  const values = assembly.values();
  judge(assembly, values, old);
  const [problems, warnings] = [inOrder(assembly.problems), inOrder(assembly.warnings)];
  const isStrict = values.strictConfig;
  return {
    values,
    provenance: assembly.provenance(),
    problems: isStrict ? [...problems, ...warnings.filter((warning) => warning.isStrictness)] : problems,
    warnings: isStrict ? warnings.filter((warning) => warning.isStrictness !== true) : warnings,
  };
}

/** By file and line; what is in no file comes first. */
function inOrder(found: readonly ConfigProblem[]): readonly ConfigProblem[] {
  const files = [undefined, ...new Set(found.flatMap(({ file }) => file ?? []))];
  return [...found].sort((a, b) => files.indexOf(a.file) - files.indexOf(b.file) || (a.line ?? 0) - (b.line ?? 0));
}

function isOldVersion({ value }: ConfigDocument, old: OldKubelets | undefined): boolean {
  if (typeof value !== "object" || value === null || !("apiVersion" in value)) return false;
  return typeof value.apiVersion === "string" && old?.versions.includes(value.apiVersion) === true;
}

function accept(assembly: Assembly, document: ConfigDocument, versions: readonly string[]): boolean {
  const problem = headProblem(document, versions);
  if (problem !== undefined) assembly.problems.push(problem);
  for (const message of document.warnings) {
    const line = Number(/^line (\d+): /.exec(message)?.[1] ?? Number.NaN);
    assembly.warnings.push({
      file: document.file,
      line: Number.isNaN(line) ? undefined : line,
      field: "",
      value: "",
      message: message.replace(/^line \d+: /, ""),
      isStrictness: true,
    });
  }
  return problem === undefined;
}

function applyFlags(assembly: Assembly, { flags, old, file, replacesFlags }: ConfigInputs): void {
  const given = [...flags.given];
  const isReplaced = (name: OptionName): boolean =>
    replacesFlags === true && file !== undefined && optionOf(name).field !== undefined;
  const own = given.flatMap((name) => optionNames.filter((option) => option === name));
  const dropped = own.filter(isReplaced);
  if (dropped.length > 0) {
    const shown = dropped.map((name) => `--${optionOf(name).flag}`).join(", ");
    const message = `as in v1.9 the file goes over flags; not used: ${shown}`;
    assembly.warnings.push({ file: file?.file, field: "", value: "", message });
  }
  assembly.flags(own.filter((name) => !isReplaced(name)).map((name) => [name, flags.values[name]] as const));
  for (const name of given) {
    const entry = old?.flags[name];
    if (old === undefined || entry?.flag === undefined) continue;
    const origin: Origin = { from: "flag", flag: entry.flag };
    assembly.old(old.flag(name, flags.values[name]), origin, `--${entry.flag}`);
  }
}

/** Options whose defaults without a file open the ports to everybody. */
const OPEN_DEFAULTS: readonly OptionName[] = ["anonymousAuth", "authorizationMode", "readOnlyPort"];

function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}

/** Defaults that follow from other settings, and values in their proper form. */
function settle(assembly: Assembly): void {
  const value = <Name extends OptionName>(name: Name): AgentOptions[Name] =>
    assembly.setting(name).value as AgentOptions[Name]; // reason: each option's value was made by its own kind
  const gates = value("featureGates");
  assembly.normalise("hostnameOverride", value("hostnameOverride").trim().toLowerCase());
  if (value("podPidsLimit") < 0) assembly.normalise("podPidsLimit", -1);
  const parallel = assembly.setting("maxParallelImagePulls");
  const isByFlag = parallel.origin.from === "flag" && !assembly.isGiven("serializeImagePulls");
  if (isByFlag && (value("maxParallelImagePulls") ?? 1) >= 2) {
    assembly.derive("serializeImagePulls", false, "--max-parallel-image-pulls");
  }
  if (value("localApiSocket") === "") {
    assembly.derive("localApiSocket", `${value("rootDir")}/kubelet.sock`, "--root-dir");
  }
  for (const [name, file] of [
    ["apiserverSocket", "apiserver.sock"],
    ["apiserverKubeconfig", "apiserver.kubeconfig"],
  ] as const) {
    if (value(name) === "") assembly.derive(name, `${value("rootDir")}/${file}`, "--root-dir");
  }
  if (value("seccompDefaultFlag") && !value("seccompDefault")) {
    assembly.derive("seccompDefault", true, "--seccomp-default");
  }
  // The default of Kubernetes lets everybody run commands in containers. Without an API server nothing needs that: the
  // commands of the agent itself use its socket.
  const hasApiServer = value("kubeconfig") !== "" || value("apiServers").length > 0;
  const isOpen = OPEN_DEFAULTS.some((name) => assembly.setting(name).origin.from === "legacy");
  if (!hasApiServer && isOpen && !assembly.isGiven("address")) {
    assembly.derive("address", "127.0.0.1", "a missing --kubeconfig");
  }
  if (!hasApiServer && value("anonymousAuth") && !assembly.isGiven("anonymousAuth")) {
    assembly.derive("anonymousAuth", false, "a missing --kubeconfig");
  }
  if (!hasApiServer && value("readOnlyPort") > 0 && !isLoopback(value("address"))) {
    const message = `port ${value("readOnlyPort")} shows pods to everybody who can reach ${value("address")}`;
    assembly.warnings.push({ field: optionOf("readOnlyPort").field ?? "", value: "", message });
  }
  const follow: readonly [OptionName, string, unknown][] = [
    ["imagePullCredentialsVerificationPolicy", "KubeletEnsureSecretPulledImages", ""],
    ["maxContainerRestartPeriod", "KubeletCrashLoopBackOffMax", undefined],
  ];
  for (const [name, gate, off] of follow) {
    if (!assembly.isGiven(name) && !isGateOn(gate, gates)) assembly.derive(name, off, `the feature gate ${gate}`);
  }
}

/** What does not go together in values that were judged one by one before. */
export function contradictionsOf(values: AgentOptions): readonly string[] {
  const ask = {
    say: (option: OptionName) => optionOf(option).field ?? `--${optionOf(option).flag}`,
    isOn: (gate: string) => isGateOn(gate, values.featureGates),
  };
  return contradictions(values, ask).map(({ message }) => message);
}

function judge(assembly: Assembly, values: AgentOptions, old: OldKubelets | undefined): void {
  for (const name of optionNames) {
    const { origin, parts } = assembly.setting(name);
    // The flag parser has judged what came by a flag.
    if (!isGiven(origin) || origin.from === "flag") continue;
    const entry = optionOf(name);
    const message = entry.validate?.(values[name]);
    if (message === undefined) continue;
    const isWhole = typeof values[name] !== "object";
    const part = [...(parts ?? [])].find(([key]) => message.startsWith(`${key} `) || message.startsWith(`${key}:`));
    const value = isWhole ? shownIfPublic(encoded(name, values), entry.secret ?? false) : "";
    assembly.problems.push({ ...placeOf(part?.[1] ?? origin), field: entry.field ?? name, value, message });
  }
  const gates = assembly.setting("featureGates");
  const verdict = judgeGates(values.featureGates, old?.gate);
  const aboutGate = ({ gate, message }: { gate: string; message: string }): ConfigProblem => {
    return { ...placeOf(gates.parts?.get(gate) ?? gates.origin), field: `featureGates[${gate}]`, value: "", message };
  };
  assembly.problems.push(...verdict.problems.map(aboutGate));
  assembly.warnings.push(...verdict.warnings.map(aboutGate));
  const ask = {
    say: (option: OptionName) => said(option, assembly.setting(option).origin),
    isOn: (gate: string) => isGateOn(gate, values.featureGates),
  };
  for (const { about, message } of contradictions(values, ask)) {
    assembly.problems.push({ ...placeOf(assembly.setting(about).origin), field: "", value: "", message });
  }
  const about = "topologyManagerPolicyOptions";
  const ignored = values.topologyManagerPolicy === "none" ? topologyOptions(values[about]) : undefined;
  if (ignored === undefined) return;
  const message = `${ask.say(about)}: ${ignored}; the policy none ignores it`;
  assembly.warnings.push({ ...placeOf(assembly.setting(about).origin), field: "", value: "", message });
}

function encoded(name: OptionName, values: AgentOptions): unknown {
  return optionOf(name).kind.encode(values[name]);
}

function placeOf(origin: Origin): { file?: string; line?: number | undefined } {
  return "file" in origin ? { file: origin.file, line: origin.line } : {};
}

/** The option in the words of the one who set it. */
function said(option: OptionName, origin: Origin): string {
  const { flag, field } = optionOf(option);
  return (origin.from !== "flag" && field !== undefined) || flag === undefined ? (field ?? option) : `--${flag}`;
}

function asProblem(message: string): ConfigProblem {
  return { field: "", value: "", message };
}

/** Options that were given but that this version does not act on yet, in the words of the one who set them. */
export function notActedOn({ provenance }: LoadedConfiguration): readonly string[] {
  const found: string[] = [];
  for (const [name, { origin }] of provenance) {
    if (isGiven(origin) && optionOf(name).effect === "planned") found.push(said(name, origin));
  }
  return found;
}

/** One notice for each deprecated flag that was used. */
export function deprecations(given: ReadonlySet<string>): readonly string[] {
  const notices: string[] = [];
  for (const name of given) {
    const option = optionNames.find((each) => each === name);
    const { flag, deprecated } = option === undefined ? { flag: undefined, deprecated: undefined } : optionOf(option);
    if (deprecated !== undefined) notices.push(`Flag --${flag} has been deprecated: ${deprecated}.`);
  }
  return notices;
}

/** The configuration of a command line alone, without files. */
export function loadFlags(flags: ConfigInputs["flags"]): LoadedConfiguration {
  return loadConfiguration({ flags });
}

/** All problems as text, a line each. */
export function problemLines(problems: readonly ConfigProblem[]): string[] {
  return problems.map(formatConfigProblem);
}
