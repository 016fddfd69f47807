import { machineInfo } from "../../adapters/host/machine.ts";
import { hasSelinux } from "../../adapters/host/node-facts.ts";
import { type AgentOptions, isGateOn } from "../../config/index.ts";
import type { Pod } from "../../model/generated/types.ts";
import { thermalPaths } from "../config/masked-paths.ts";
import type { PodPaths } from "../config/paths.ts";
import type { NodeFacts } from "./context.ts";

/** What the facts of the node are read from. */
export interface NodeFactsDeps {
  readonly files: { readSmall(path: string): string; exists(path: string): boolean };
  /** The options of now; those that need a restart are read once. */
  options(): AgentOptions;
  readonly machine: { readonly addresses: readonly string[] };
  readonly rules: {
    resources(): { readonly allocatable: Readonly<Record<string, string>> };
    hasRecursiveReadOnly(handler: string | undefined): boolean;
  };
  readonly limits: NodeFacts["limits"];
  /** The runtime's handler of the pod, as far as is known. */
  handlerOf(pod: Pod): string | undefined;
}

/** What the executors know of the node; what may change while the agent runs is read at each use. */
export function nodeFacts(
  { files, options, machine, rules, limits, handlerOf }: NodeFactsDeps,
  fixed: Pick<NodeFacts, "runtimeName"> & { readonly containerLogsDir: string; readonly owner?: string },
): NodeFacts {
  const { rootDir, podLogsDir, seccompDefault, seccompDefaultFlag, featureGates } = options();
  const { runtimeName, owner, containerLogsDir } = fixed;
  const paths: PodPaths = { rootDir, podLogsDir, containerLogsDir };
  return {
    paths,
    limits,
    runtimeName,
    bootId: machineInfo().bootId,
    get hostIps() {
      return machine.addresses;
    },
    allocatable: () => rules.resources().allocatable,
    extraMaskedPaths: thermalPaths(files),
    hasRecursiveReadOnly: (pod) => rules.hasRecursiveReadOnly(handlerOf(pod)),
    showsVolumeImages: isGateOn("ImageVolumeWithDigest", featureGates),
    hasSelinux: hasSelinux(),
    security: () => options(),
    seccompDefault: seccompDefault || seccompDefaultFlag,
    ...(owner === undefined ? {} : { owner }),
    dns: () => {
      const { resolvConf, clusterDNS: clusterDns, clusterDomain } = options();
      const text = resolvConf === "" ? undefined : files.readSmall(resolvConf);
      return { resolvConf: text, hostIps: machine.addresses, clusterDns, clusterDomain };
    },
    hostsFile: () => files.readSmall("/etc/hosts"),
  };
}
