export { type ClusterNodeDeps, composeClusterNode, type NodeDevices, type NodeVolumes } from "./compose.ts";
export { CsiDriverReport } from "./csi-drivers.ts";
export { composeGuards } from "./guards.ts";
export { prepareHost } from "./host-checks.ts";
export { determineNodeAddresses, hostIpsOf, type NodeAddresses } from "./node-addresses.ts";
export { NodeReporter } from "./node-reporter.ts";
export { type NodeForAdmission, NodeRules } from "./node-rules.ts";
export { OomCounts } from "./oom/oom-counts.ts";
export { standalonePodCidr } from "./pod-cidr.ts";
