import { identifyRuntime } from "../adapters/connect-runtime.ts";
import type { LinuxHost } from "../adapters/host/index.ts";
import { hasSelinux } from "../adapters/host/node-facts.ts";
import { makePluginDirectories } from "../adapters/host/plugin-directories.ts";
import { shareRootDir } from "../adapters/host/share-root-dir.ts";
import { connectApi } from "../adapters/kubeapi/index.ts";
import type { agentOptions, OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import { determineNodeAddresses, hostIpsOf } from "../node/index.ts";
import { hostUserPool } from "../pods/index.ts";
import type { KubeletSettings } from "./kubelet.ts";

/** What a start needs before the agent is built. */
export interface PrepareDeps {
  readonly host: LinuxHost;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Resolves what has to be known before the agent is built, and makes its directories. */
export async function prepareSettings(
  deps: PrepareDeps,
  given: Pick<KubeletSettings, "options" | "containerLogsDir" | "owner">,
  { signal }: Abortable,
): Promise<KubeletSettings & { readonly runtimeVersion: string }> {
  const { host } = deps;
  const { options } = given;
  for (const path of [options.rootDir, `${options.rootDir}/pods`]) await host.makeDir(path, 0o750);
  await shareRootDir(deps, options.rootDir);
  await makePluginDirectories(deps, { rootDir: options.rootDir, hasSelinux: hasSelinux() });
  for (const path of [options.podLogsDir, given.containerLogsDir]) await host.makeDir(path, 0o755);
  const { version, driver } = await identifyRuntime(deps, options.containerRuntimeEndpoint, { signal });
  return {
    ...given,
    userPool: await hostUserPool(host, options),
    machine: { ...host.machine(), nodeName: options.hostnameOverride || host.hostname().toLowerCase() },
    cgroupDriver: driver ?? (options.cgroupDriver === "systemd" ? "systemd" : "cgroupfs"),
    runtimeName: version?.name ?? "containerd",
    runtimeVersion: version?.version ?? "(not answering yet)",
  };
}

/** Connects to the API server, if there is one, and resolves the node's addresses. */
export async function joinCluster(
  deps: PrepareDeps & { readonly store: OptionStore<typeof agentOptions> },
  { machine, options }: KubeletSettings,
  { signal }: Abortable,
): Promise<Pick<KubeletSettings, "connection" | "machine">> {
  if (options.runOnce) return { machine };
  const connection = await connectApi(deps, machine.nodeName, { signal });
  if (connection === undefined) return { machine };
  const own = (): string[] => deps.host.hostAddresses().map(({ address }) => address);
  const addresses = await determineNodeAddresses(options, { nodeName: machine.nodeName, own, clock: deps.clock });
  const joined = {
    ...machine,
    // Read at each use: the addresses change while the agent runs.
    get addresses() {
      return hostIpsOf(addresses.current);
    },
  };
  return { connection: { ...connection, addresses }, machine: joined };
}
