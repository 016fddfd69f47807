export { ApiStore, type OpenLog } from "./api-store.ts";
export { Collection, type CollectionOptions } from "./collection.ts";
export type { EventQueue } from "./event-queue.ts";
export type { HistoryLimits, StoreEvent } from "./history.ts";
export {
  type FactsReader,
  type JsonObject,
  type ObjectPlace,
  type SelectableFacts,
  StoredObject,
} from "./stored-object.ts";
export type { Transaction } from "./transaction.ts";
