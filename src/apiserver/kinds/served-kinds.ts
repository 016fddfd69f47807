import { controllerRevisionKind } from "./apps/controller-revision.ts";
import { daemonSetKind } from "./apps/daemon-set.ts";
import { deploymentKind } from "./apps/deployment.ts";
import { replicaSetKind } from "./apps/replica-set.ts";
import { statefulSetKind } from "./apps/stateful-set.ts";
import { cronJobKind } from "./batch/cron-job.ts";
import { jobKind } from "./batch/job.ts";
import { leaseKind } from "./cluster/lease.ts";
import { priorityClassKind } from "./cluster/priority-class.ts";
import { runtimeClassKind } from "./cluster/runtime-class.ts";
import { configMapKind } from "./core/config-map.ts";
import { eventKind, newEventKind } from "./core/event.ts";
import { namespaceKind } from "./core/namespace.ts";
import { nodeKind } from "./core/node.ts";
import { secretKind } from "./core/secret.ts";
import { serviceAccountKind } from "./core/service-account.ts";
import type { Kind } from "./kind.ts";
import { endpointSliceKind, endpointsKind } from "./network/endpoints.ts";
import { serviceKind } from "./network/service.ts";
import type { ServiceRanges } from "./network/service-allocation.ts";
import { podKind } from "./pod/pod-kind.ts";
import { csiDriverKind, csiNodeKind, volumeAttachmentKind } from "./storage/csi.ts";
import { persistentVolumeKind } from "./storage/persistent-volume.ts";
import { persistentVolumeClaimKind } from "./storage/persistent-volume-claim.ts";
import { storageClassKind } from "./storage/storage-class.ts";

/** What kinds need to know about the agent. */
export interface KindSettings {
  /** The certificate that pods trust the API by, PEM; empty without one. */
  readonly authority: string;
  readonly services: ServiceRanges;
  /** Where the pods of a source of manifests come from, in words. */
  describeSource(source: string): string;
}

/** Every kind that the local API serves; the order is that of discovery. */
export function servedKinds({ authority, services, describeSource }: KindSettings): readonly Kind[] {
  return [
    configMapKind,
    endpointsKind,
    eventKind,
    namespaceKind(authority),
    nodeKind,
    persistentVolumeClaimKind,
    persistentVolumeKind,
    podKind(describeSource),
    secretKind,
    serviceAccountKind,
    serviceKind(services),
    controllerRevisionKind,
    daemonSetKind,
    deploymentKind,
    replicaSetKind,
    statefulSetKind,
    newEventKind,
    cronJobKind,
    jobKind,
    csiDriverKind,
    csiNodeKind,
    storageClassKind,
    volumeAttachmentKind,
    priorityClassKind,
    leaseKind,
    runtimeClassKind,
    endpointSliceKind,
  ];
}
