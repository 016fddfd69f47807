import { EventRecorder } from "../events/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import { pullCredentials, type RegistryAuth } from "../model/docker-config.ts";
import type { Container, Node, Pod, Secret } from "../model/generated/types.ts";
import { CONFIG_MIRROR_ANNOTATION } from "../model/labels.ts";
import { isMirrorPod, isStaticPod } from "../model/pod-facts.ts";
import type { NodeReporter } from "../node/index.ts";
import {
  ApiCheckpoint,
  ApiFacts,
  ApiObjects,
  ApiPods,
  ApiTokens,
  ApiTrustBundles,
  type CheckpointContent,
  maySafelyRunTwice,
  pollTimes,
} from "../sources/index.ts";
import { MirrorPods, StatusWriter, statusMetrics } from "../status/index.ts";
import { composeClusterNode } from "./cluster-node.ts";
import {
  type ClusterDeps,
  type ClusterRing,
  type Loop,
  mirrorSource,
  statusSource,
  subjectOf,
} from "./cluster-parts.ts";

/** An API server that was not reached for this long after the start is away. */
const AWAY_AFTER_MS = 5000;

interface CredentialRequest {
  readonly pod: Pod;
  readonly container: Container;
  readonly journal: { event(type: "Warning", reason: string, message: string): void };
}

/** Everything that speaks with the API server: pods in, status and events out, the node, and what pods refer to. */
export class Cluster {
  readonly objects: ApiObjects;
  readonly tokens: ApiTokens;
  readonly trustBundles: ApiTrustBundles;
  /** What pods are made with that only the cluster knows. */
  readonly facts: ApiFacts;
  private readonly checkpoint: ApiCheckpoint;
  private reporter: NodeReporter | undefined;
  private pods: ApiPods | undefined;
  private mirrors: MirrorPods | undefined;

  constructor(private readonly deps: ClusterDeps) {
    const { clock, connection, signal } = deps;
    const api = connection.clients.calls;
    const changed = (): void => this.checkpoint.touch();
    const poll = pollTimes(deps.store, () => this.currentNode());
    this.objects = new ApiObjects({ api, clock, changed, ...(poll && { poll }) }, signal);
    this.tokens = new ApiTokens({ api, clock, random: Math.random, changed });
    this.trustBundles = new ApiTrustBundles({ api, clock, log: deps.log }, signal);
    this.facts = new ApiFacts({ api, clock, log: deps.log });
    this.checkpoint = new ApiCheckpoint(
      { clock, log: deps.log, content: () => this.kept() },
      deps.store.current.rootDir,
    );
  }

  /** Credentials for an image from the pod's pull secrets; those that are missing are told of and left out. */
  async credentials(
    { pod, container, journal }: CredentialRequest,
    options: Abortable,
  ): Promise<readonly RegistryAuth[]> {
    const names = (pod.spec.imagePullSecrets ?? []).map(({ name = "" }) => name).filter((name) => name !== "");
    if (names.length === 0 || isStaticPod(pod)) return [];
    const namespace = pod.metadata.namespace ?? "";
    const read = (name: string): Promise<Secret | undefined> =>
      this.objects.get({ kind: "Secret", namespace, name }, options).catch((error: unknown) => {
        options.signal.throwIfAborted();
        this.deps.log.warn("a pull secret cannot be read", { namespace, name, error: messageOf(error) });
        return undefined;
      });
    const found = await Promise.all(names.map(read));
    const missing = names.filter((_, at) => found[at] === undefined);
    if (missing.length > 0) {
      const message = `Unable to retrieve some image pull secrets (${missing.join(", ")}); attempting to pull the image may not succeed.`;
      journal.event("Warning", "FailedToRetrieveImagePullSecret", message);
    }
    return pullCredentials(
      container.image ?? "",
      found.filter((secret) => secret !== undefined),
    );
  }

  /** The node as the API server has it; undefined before it was registered. */
  currentNode(): Node | undefined {
    return this.reporter?.current;
  }

  /** The pods that are wanted now: what they refer to is followed, mirrors of others go. */
  wanted(pods: readonly Pod[]): void {
    this.objects.wanted(pods);
    this.tokens.wanted(pods);
    for (const pod of this.pods?.all() ?? []) if (isMirrorPod(pod)) this.mirrors?.wake(pod);
    if (this.pods?.hasSynced) this.checkpoint.touch();
  }

  /** Connects the ring; the loops run as long as the agent. */
  attach(ring: ClusterRing): readonly Loop[] {
    const { clock, log, connection } = this.deps;
    const { clients } = connection;
    const events = this.events(ring);
    const node = composeClusterNode(this.deps, ring);
    const pods = this.podSource(ring);
    const measured = statusMetrics(this.deps.metrics, () => pods.all());
    const isBusy = (): boolean => ring.pool.hasWaiting;
    const source = statusSource(ring, pods);
    const status = new StatusWriter({ api: clients.calls, clock, log, pods: source, measured, isBusy });
    const mirrors = new MirrorPods({
      ...{ api: clients.calls, clock, log },
      pods: mirrorSource(ring, { pods, node: () => node.reporter.current }),
    });
    this.pods = pods;
    this.mirrors = mirrors;
    this.reporter = node.reporter;
    this.seen = (pod, isGone) => {
      const uid = (isMirrorPod(pod) ? pod.metadata.annotations?.[CONFIG_MIRROR_ANNOTATION] : pod.metadata.uid) ?? "";
      if (isMirrorPod(pod)) mirrors.wake(pod);
      if (isGone) status.forget(uid);
      else status.wake(uid);
    };
    this.followStatuses(ring, { status, mirrors, reporter: node.reporter });
    return [
      ...node.loops,
      { name: "api", run: (signal) => pods.run(signal) },
      { name: "pod status", run: (signal) => status.run(signal) },
      { name: "mirror pods", run: (signal) => mirrors.run(signal) },
      { name: "facts", run: (signal) => this.facts.run(signal) },
      { name: "checkpoint", run: (signal) => this.startWithout(pods, signal) },
      events,
      ...(connection.rotate === undefined ? [] : [{ name: "certificate", run: connection.rotate }]),
      { name: "connections", run: (signal) => untilAborted(signal).then(() => clients.close()) },
    ];
  }

  /** Pods that may be started without the server, and what they are made with. */
  private kept(): CheckpointContent {
    const pods = (this.pods?.current() ?? []).filter(maySafelyRunTwice);
    return {
      ...{ pods, configMaps: this.objects.known("ConfigMap", pods), secrets: this.objects.known("Secret", pods) },
      ...{ ...this.facts.known(pods), tokens: this.tokens.known(pods) },
    };
  }

  /** A server that is away at the start is waited for a moment; then the pods that may run without it do. */
  private async startWithout(pods: ApiPods, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    await clock.sleep(AWAY_AFTER_MS, { signal }).catch(() => undefined);
    const kept = signal.aborted || !pods.isAway ? undefined : await this.checkpoint.load();
    if (kept !== undefined && pods.isAway) {
      log.warn("the API server is away: pods that may run without it are started", { pods: kept.pods.length });
      this.objects.restore("ConfigMap", kept.configMaps);
      this.objects.restore("Secret", kept.secrets);
      this.facts.restore(kept.services, kept.runtimeClasses);
      this.tokens.restore(kept.tokens);
      pods.startWithout(kept.pods);
    }
    await untilAborted(signal);
    await this.checkpoint.close();
  }

  private seen: (pod: Pod, isGone: boolean) => void = () => undefined;

  private podSource(ring: ClusterRing): ApiPods {
    const { clock, log, connection, nodeName } = this.deps;
    return new ApiPods(
      {
        ...{ api: connection.clients.calls, clock, log },
        publish: (snapshot) => ring.publish(snapshot),
        seen: (pod, isGone) => this.seen(pod, isGone),
      },
      { nodeName },
    );
  }

  private followStatuses(
    { desired, pool }: ClusterRing,
    { status, mirrors, reporter }: { status: StatusWriter; mirrors: MirrorPods; reporter: NodeReporter },
  ): void {
    const { signal } = this.deps;
    /** Static pods by UID: when one is gone, nobody else knows its name any more. */
    const known = new Map<string, Pod>();
    pool.onStatus(
      (uid) => {
        const pod = pool.worker(uid)?.pod ?? desired.get(uid)?.pod ?? known.get(uid);
        if (pod !== undefined && isStaticPod(pod)) {
          if (pool.worker(uid) === undefined) known.delete(uid);
          else known.set(uid, pod);
          mirrors.wake(pod);
        }
        status.wake(uid);
      },
      { signal },
    );
    let uid: string | undefined;
    reporter.onNode(
      (node) => {
        if (node.metadata.uid === uid) return;
        uid = node.metadata.uid;
        for (const { pod } of desired.list()) if (isStaticPod(pod)) mirrors.wake(pod);
      },
      { signal },
    );
  }

  private events({ journal, desired, pool }: ClusterRing): Loop {
    const { clock, log, connection, metrics, nodeName, signal } = this.deps;
    const dropped = metrics.counter("kubelet_ts_events_dropped_total", "Events that were not sent: too many waited.");
    const recorder = new EventRecorder(
      {
        ...{ api: connection.clients.events, clock, log, random: Math.random },
        ...{ dropped: () => dropped.inc(), isBusy: () => pool.isStarting },
      },
      { nodeName },
    );
    journal.onEvent(
      (event) => {
        const pod = pool.worker(event.pod.uid)?.pod ?? desired.get(event.pod.uid)?.pod;
        const about = subjectOf(event, pod, nodeName);
        if (about !== undefined)
          recorder.record({ type: event.type, reason: event.reason, message: event.message, about });
      },
      { signal },
    );
    return { name: "events", run: (stop) => recorder.run(stop) };
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
