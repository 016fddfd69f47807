export { type AddressFacts, nodeAddresses } from "./addresses.ts";
export { type MachineResources, type NodeResources, nodeResources, type Reservations } from "./capacity.ts";
export { type NodeHealth, nodeConditions } from "./conditions.ts";
export { CsiNodeKeeper } from "./csi-node.ts";
export { LeaseKeeper } from "./lease-keeper.ts";
export { type NodeFacts, type NodeIdentity, nodeImages } from "./node-object.ts";
export { NodeReporter } from "./node-reporter.ts";
