import type {
  ControllerRevision,
  CronJob,
  DaemonSet,
  Deployment,
  EndpointSlice,
  Endpoints,
  EventsEvent,
  Job,
  Namespace,
  PriorityClass,
  ReplicaSet,
  StatefulSet,
  StorageClass,
} from "../../model/generated/types.ts";
import { clusterWide, namespaced } from "./resources.ts";

// Resources that a node agent never asks a cluster for: those of the local API and its controllers.

export const NAMESPACES = clusterWide<Namespace>("Namespace", ["", "v1", "namespaces"]);
export const ENDPOINTS = namespaced<Endpoints>("Endpoints", ["", "v1", "endpoints"]);
export const DEPLOYMENTS = namespaced<Deployment>("Deployment", ["apps", "v1", "deployments"]);
export const REPLICA_SETS = namespaced<ReplicaSet>("ReplicaSet", ["apps", "v1", "replicasets"]);
export const STATEFUL_SETS = namespaced<StatefulSet>("StatefulSet", ["apps", "v1", "statefulsets"]);
export const DAEMON_SETS = namespaced<DaemonSet>("DaemonSet", ["apps", "v1", "daemonsets"]);
export const CONTROLLER_REVISIONS = namespaced<ControllerRevision>("ControllerRevision", [
  "apps",
  "v1",
  "controllerrevisions",
]);
export const JOBS = namespaced<Job>("Job", ["batch", "v1", "jobs"]);
export const CRON_JOBS = namespaced<CronJob>("CronJob", ["batch", "v1", "cronjobs"]);
export const ENDPOINT_SLICES = namespaced<EndpointSlice>("EndpointSlice", ["discovery.k8s.io", "v1", "endpointslices"]);
/** The newer form of events; they are the same objects as `EVENTS`. */
export const NEW_EVENTS = namespaced<EventsEvent>("Event", ["events.k8s.io", "v1", "events"]);
export const PRIORITY_CLASSES = clusterWide<PriorityClass>("PriorityClass", [
  "scheduling.k8s.io",
  "v1",
  "priorityclasses",
]);
export const STORAGE_CLASSES = clusterWide<StorageClass>("StorageClass", ["storage.k8s.io", "v1", "storageclasses"]);
