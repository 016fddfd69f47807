import type { KubeApi } from "../adapters/kubeapi/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import { claimController } from "./claims/claims.ts";
import type { ControllerFactory } from "./controller.ts";
import { cronJobController } from "./cronjob/cron-jobs.ts";
import { daemonSetController } from "./daemonset/daemon-sets.ts";
import { deploymentController } from "./deployment/deployments.ts";
import { endpointSliceController } from "./endpoint-slices/endpoint-slices.ts";
import { EventSink } from "./event-sink.ts";
import { garbageCollectorController } from "./garbage/garbage-collector.ts";
import { Informers } from "./informers.ts";
import { jobController } from "./job/jobs.ts";
import { replicaSetController } from "./replicaset/replica-sets.ts";
import { schedulerController } from "./scheduler/scheduler.ts";
import { statefulSetController } from "./statefulset/stateful-sets.ts";
import type { VolumeDirectories } from "./volume-directories.ts";

export interface ControllersDeps {
  /** A client for a controller: what it writes is owned by that name. */
  api(manager: string): KubeApi;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly volumes?: VolumeDirectories;
}

/** Every controller of the local API, with the name under which it writes. */
const CONTROLLERS: readonly (readonly [manager: string, factory: ControllerFactory])[] = [
  ["kube-scheduler", schedulerController],
  ["kube-controller-manager", garbageCollectorController],
  ["kube-controller-manager", deploymentController],
  ["kube-controller-manager", replicaSetController],
  ["kube-controller-manager", statefulSetController],
  ["kube-controller-manager", daemonSetController],
  ["kube-controller-manager", jobController],
  ["kube-controller-manager", cronJobController],
  ["kube-controller-manager", claimController],
  ["kube-controller-manager", endpointSliceController],
];

/** Builds the controllers; their loops end with the signal. */
export function composeControllers(deps: ControllersDeps, signal: AbortSignal): readonly Loop[] {
  const { clock, log, random, volumes } = deps;
  const shared = deps.api("kube-controller-manager");
  const informers = new Informers({ api: shared, clock, log }, signal);
  const events = new EventSink({ api: shared, clock, log, random });
  const controllers = CONTROLLERS.map(([manager, make]) =>
    make({ api: deps.api(manager), informers, events, clock, log, random, ...(volumes && { volumes }) }),
  );
  return [...controllers, { name: "events of controllers", run: (stop) => events.run(stop) }];
}
