export { Conntrack } from "./conntrack.ts";
export { type CommandRunner, NftTable } from "./nft-table.ts";
export {
  type ConnectionTable,
  type DatagramFlow,
  type Forwarding,
  type ForwardingTable,
  NetfilterError,
  type Protocol,
  type Target,
} from "./port.ts";
export { ensureServiceLink, hidesBridgedFrames } from "./service-link.ts";
export type { TableOptions } from "./shape.ts";
