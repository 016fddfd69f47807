export { composeTopology, type Topology, type TopologyParts } from "./compose.ts";
export { type MergeRules, mergeHints } from "./merge-hints.ts";
