export { type ApiNode, ApiServer, type ApiServerDeps, type ApiServerOptions } from "./compose.ts";
export type { RequestUser } from "./kinds/kind.ts";
export { AddressRange } from "./kinds/network/address-range.ts";
export { type LocalCluster, type LocalClusterOptions, openLocalCluster } from "./serve/local-cluster.ts";
export type { OpenLog } from "./store/index.ts";
