import { bool, int, text } from "../kinds.ts";
import { type OptionTable, option } from "../option.ts";
import { absolutePath, between, ip } from "../rules.ts";
import { ipv4Range, portRange } from "../rules-fields.ts";

/** The local API, which only this agent has. */
export const apiServerFlags = {
  apiserver: option(bool, {
    flag: "apiserver",
    default: false,
    topic: "Local API",
    help: "Serve an API of this node alone, which kubectl talks to. Only without a kubeconfig.",
  }),
  apiserverAddress: option(text("IP"), {
    flag: "apiserver-address",
    default: "127.0.0.1",
    topic: "Local API",
    help: "Address that the local API listens on.",
    validate: ip,
  }),
  apiserverPort: option(int, {
    flag: "apiserver-port",
    default: 6443,
    topic: "Local API",
    help: "Port of the local API (HTTPS); 0 leaves only the socket.",
    validate: between(0, 65535),
  }),
  apiserverSocket: option(text("PATH"), {
    flag: "apiserver-socket",
    default: "",
    topic: "Local API",
    help: "Unix socket of the local API, for root; empty means ROOT-DIR/apiserver.sock.",
    validate: (value) => (value === "" ? undefined : absolutePath(value)),
  }),
  apiserverKubeconfig: option(text("FILE"), {
    flag: "apiserver-kubeconfig",
    default: "",
    topic: "Local API",
    help: "The kubeconfig that is written for root; empty means ROOT-DIR/apiserver.kubeconfig.",
    validate: (value) => (value === "" ? undefined : absolutePath(value)),
  }),
  serviceClusterIPRange: option(text("CIDR"), {
    flag: "service-cluster-ip-range",
    default: "10.43.0.0/16",
    topic: "Local API",
    help: "Addresses for services of the local API.",
    validate: ipv4Range,
  }),
  serviceNodePortRange: option(text("FIRST-LAST"), {
    flag: "service-node-port-range",
    default: "30000-32767",
    topic: "Local API",
    help: "Ports for services of type NodePort of the local API.",
    validate: portRange,
  }),
} as const satisfies OptionTable;
