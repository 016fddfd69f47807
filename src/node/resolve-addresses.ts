import { addressesOf } from "../adapters/host/node-facts.ts";
import { type AgentOptions, ConfigurationError } from "../config/index.ts";
import { messageOf } from "../lib/errors.ts";
import type { NodeAddress } from "../model/generated/types.ts";
import { nodeAddresses } from "./addresses.ts";

/** The addresses of the Node object. Rejects with `ConfigurationError` if `--node-ip` does not fit the host. */
export async function resolveNodeAddresses(
  { nodeIP, cloudProvider }: Pick<AgentOptions, "nodeIP" | "cloudProvider">,
  { nodeName, addresses }: { readonly nodeName: string; readonly addresses: readonly string[] },
): Promise<readonly NodeAddress[]> {
  try {
    return nodeAddresses({
      nodeName,
      nodeIp: nodeIP,
      isExternalCloud: cloudProvider === "external",
      own: addresses,
      resolved: nodeIP === "" ? await addressesOf(nodeName) : [],
    });
  } catch (error) {
    throw new ConfigurationError("Impossible", messageOf(error));
  }
}
