import { type AgentOptions, agentOptions } from "./agent-options.ts";
import { type Parsed, parseOptions } from "./parse.ts";

/** The agent's own command line: flags only, with the rules between options applied. */
export function parseAgentOptions(argv: readonly string[]): Parsed<typeof agentOptions> {
  const parsed = parseOptions(argv, agentOptions);
  const problems = [...parsed.problems];
  for (const word of parsed.words) problems.push(`unknown command "${word}"; see kubelet --help`);
  problems.push(...conflicts(parsed.values, parsed.given));
  return { ...parsed, values: derive(parsed.values, parsed.given), problems };
}

/** Settings that do not go together. */
export function conflicts(values: AgentOptions, given: ReadonlySet<keyof AgentOptions>): string[] {
  const problems: string[] = [];
  const parallel = values.maxParallelImagePulls ?? 1;
  if (given.has("serializeImagePulls") && values.serializeImagePulls && parallel > 1) {
    problems.push(`--max-parallel-image-pulls=${parallel} needs --serialize-image-pulls=false`);
  }
  if (values.vmodule !== "" && values.loggingFormat !== "text") {
    problems.push("--vmodule works only with --logging-format=text");
  }
  if (values.healthzPort !== 0 && values.healthzPort === values.readOnlyPort) {
    problems.push(`--healthz-port and --read-only-port are both ${values.healthzPort}`);
  }
  return problems;
}

/** Defaults that follow from other settings, as in Kubernetes, and empty addresses back to their defaults. */
export function derive(values: AgentOptions, given: ReadonlySet<keyof AgentOptions>): AgentOptions {
  const parallel = values.maxParallelImagePulls ?? 1;
  return {
    ...values,
    hostnameOverride: values.hostnameOverride.trim().toLowerCase(),
    serializeImagePulls: given.has("serializeImagePulls") ? values.serializeImagePulls : parallel < 2,
    healthzBindAddress: values.healthzBindAddress || agentOptions.healthzBindAddress.default,
    address: values.address || agentOptions.address.default,
    localApiSocket: values.localApiSocket || `${values.rootDir}/kubelet.sock`,
  };
}
