export { type AddressFacts, nodeAddresses } from "./addresses.ts";
export {
  type MachineResources,
  type NodeResources,
  nodeResources,
  type Reservations,
} from "./capacity.ts";
export { type NodeHealth, nodeConditions } from "./conditions.ts";
export { ConfigFollower } from "./config-follower.ts";
export { ConfigReporter } from "./config-reporter.ts";
export { configConditions } from "./config-status.ts";
export { CsiNodeKeeper } from "./csi-node.ts";
export { declaredFeatures } from "./declared-features.ts";
export { LeaseKeeper } from "./lease-keeper.ts";
export { type NodeFacts, type NodeIdentity, nodeImages } from "./node-object.ts";
export { NodeReporter } from "./node-reporter.ts";
