import type { CertificateFacts, RequestAnswer } from "../adapters/kubeapi/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { LabelValues, Metrics } from "../lib/metrics.ts";
import { versionInfo } from "../lib/version.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import { isMirrorPod, isStaticPod } from "../model/pod-facts.ts";
import type { DesiredPods, WorkerPool } from "../pods/index.ts";
import type { CgroupHost } from "../resources/index.ts";

/** What the gauges of the agent are read from, at each scrape and only then. */
export interface AgentFacts {
  readonly nodeName: string;
  readonly desired: Pick<DesiredPods, "list" | "get">;
  readonly pool: Pick<WorkerPool, "uids" | "worker">;
  readonly observer: { list(): readonly ObservedPod[] };
  /** When all of the runtime was listed last; undefined before the first time. */
  listedAt(): { readonly wall: number } | undefined;
}

type Values = Iterable<readonly [LabelValues, number]>;

/** Kubernetes' words for what a worker does. */
const LIFECYCLES = { syncing: "sync", stopping: "terminating", stopped: "terminated", gone: "terminated" } as const;

/** Declares the gauges about the node and its pods, by Kubernetes' names. */
export function showAgent(metrics: Metrics, facts: AgentFacts): void {
  const { desired, pool, observer } = facts;
  const one = (name: string, help: string, value: () => number): void =>
    metrics.gaugeFrom(name, help, { values: () => [[[], value()]] });
  metrics.gaugeFrom("kubelet_node_name", "The name of this node; always 1.", {
    ...{ labels: ["node"], values: () => [[[facts.nodeName], 1]] },
  });
  one("process_start_time_seconds", "When the agent began, as Unix time.", () => performance.timeOrigin / 1000);
  one("process_resident_memory_bytes", "Memory that the agent has.", () => process.memoryUsage.rss());
  one("kubelet_running_pods", "Pods that have a running sandbox.", () => withSandbox(observer.list()));
  metrics.gaugeFrom("kubelet_running_containers", "Containers of the runtime by their state.", {
    ...{ labels: ["container_state"], values: () => containerStates(observer.list()) },
  });
  const wanted = (): Values => tally(desired.list().map(({ pod }) => [isStaticPod(pod) ? "true" : ""]));
  metrics.gaugeFrom("kubelet_desired_pods", "Pods that the sources want.", { labels: ["static"], values: wanted });
  const workers = () =>
    pool
      .uids()
      .map((uid) => pool.worker(uid))
      .filter((worker) => worker !== undefined);
  metrics.gaugeFrom("kubelet_active_pods", "Pods that have not ended.", {
    labels: ["static"],
    values: () =>
      tally(
        workers()
          .filter(({ phase }) => phase === "syncing" || phase === "stopping")
          .map(({ pod }) => [isStaticPod(pod) ? "true" : ""]),
      ),
  });
  metrics.gaugeFrom("kubelet_working_pods", "Pods that have a worker, by what it does.", {
    labels: ["lifecycle", "config", "static"],
    values: () =>
      tally(
        workers().map(({ phase, pod, identity }) => {
          const config = desired.get(identity.uid) === undefined ? "orphan" : "desired";
          return [LIFECYCLES[phase], config, isStaticPod(pod) ? "true" : ""];
        }),
      ),
  });
  const guests = (): number => workers().reduce((sum, { pod }) => sum + (pod.spec.ephemeralContainers ?? []).length, 0);
  one("kubelet_managed_ephemeral_containers", "Ephemeral containers of the pods.", guests);
  one("kubelet_pleg_last_seen_seconds", "When all of the runtime was listed last, as Unix time.", () =>
    Math.floor((facts.listedAt()?.wall ?? 0) / 1000),
  );
}

/** Declares how long reading a single pod takes; the answer is for the observer. */
export function readMetrics(metrics: Metrics): (tookMs: number) => void {
  const duration = metrics.histogram("kubelet_pleg_pod_relist_duration_seconds", "How long reading one pod took.");
  return (tookMs) => duration.observe(tookMs / 1000);
}

/** Declares the version of the machine's cgroups and how long changing them takes; answers the tree, measured. */
export function measuredCgroups(metrics: Metrics, clock: Clock, of: { tree: CgroupHost; version: number }): CgroupHost {
  metrics.gaugeFrom("kubelet_cgroup_version", "The version of the cgroups of this machine.", {
    values: () => [[[], of.version]],
  });
  const duration = metrics.histogram("kubelet_cgroup_manager_duration_seconds", "How long changing cgroups took.", [
    "operation_type",
  ]);
  const timed = async <T>(operation: string, work: () => Promise<T>): Promise<T> => {
    const began = clock.now().mono;
    try {
      return await work();
    } finally {
      duration.observe((clock.now().mono - began) / 1000, [operation]);
    }
  };
  const { tree } = of;
  return {
    ensure: (path) => timed("create", () => tree.ensure(path)),
    set: (path, values) => timed("update", () => tree.set(path, values)),
    forget: (path) => timed("destroy", () => tree.forget(path)),
    exists: (path) => tree.exists(path),
    read: (path) => tree.read(path),
    memoryUsage: (path, containerId) => tree.memoryUsage(path, containerId),
  };
}

/** Declares how long and how often everything is listed; the answer is for the observer. */
export function relistMetrics(metrics: Metrics, clock: Clock): (tookMs: number) => void {
  const duration = metrics.histogram("kubelet_pleg_relist_duration_seconds", "How long listing the runtime took.");
  const interval = metrics.histogram("kubelet_pleg_relist_interval_seconds", "Time between two lists of the runtime.");
  let last: number | undefined;
  return (tookMs) => {
    const now = clock.now().mono;
    duration.observe(tookMs / 1000);
    if (last !== undefined) interval.observe((now - last) / 1000);
    last = now;
  };
}

/** Seconds, as in Kubernetes. */
const STATUS_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60];

/** Declares what is told of statuses and mirrors on the server; the answer is for the one who sends statuses. */
export function statusMetrics(metrics: Metrics, onServer: () => Iterable<Pod>): (tookMs: number) => void {
  metrics.gaugeFrom("kubelet_mirror_pods", "Mirrors of static pods that the server has.", {
    values: () => [[[], [...onServer()].filter(isMirrorPod).length]],
  });
  const duration = metrics.histogram(
    "kubelet_pod_status_sync_duration_seconds",
    "From a change of a pod's status to the server having it.",
    { buckets: STATUS_BUCKETS },
  );
  return (tookMs) => duration.observe(tookMs / 1000);
}

/** Declares which program this is, as every part of Kubernetes does. */
export function showBuild(metrics: Metrics, version: string): void {
  const { major = "", minor = "", buildDate = "", nodeVersion = "", platform = "" } = versionInfo();
  const labels = ["major", "minor", "git_version", "build_date", "compiler", "platform"];
  const values = [major, minor, version, buildDate, `node ${nodeVersion}`, platform];
  metrics.gaugeFrom("kubernetes_build_info", "The version of this program; always 1.", {
    ...{ labels, values: () => [[values, 1]] },
  });
}

/** Declares `rest_client_requests_total`; the answer is for the clients. */
export function restClientMetrics(metrics: Metrics): (answer: RequestAnswer) => void {
  const labels = ["code", "method", "host"];
  const total = metrics.counter(
    "rest_client_requests_total",
    "Requests to the API server by what it answered.",
    labels,
  );
  return ({ code, method, host }) => total.inc([code, method, host]);
}

/** Declares how long a certificate that the agent keeps fresh is still good, and how often a new one was not given. */
export function showCertificate(
  metrics: Metrics,
  clock: Clock,
  { kind, facts }: { readonly kind: "client" | "server"; facts(): CertificateFacts },
): void {
  const ttl = (): number => {
    const { expiresAt } = facts();
    return expiresAt === undefined ? Number.POSITIVE_INFINITY : Math.round((expiresAt - clock.now().wall) / 1000);
  };
  metrics.gaugeFrom(`kubelet_certificate_manager_${kind}_ttl_seconds`, `Until the ${kind} certificate ends.`, {
    values: () => [[[], ttl()]],
  });
  // The two names differ in Kubernetes too.
  const errors =
    kind === "client"
      ? "kubelet_certificate_manager_client_expiration_renew_errors"
      : "kubelet_server_expiration_renew_errors";
  metrics.counterFrom(errors, `Failed tries to renew the ${kind} certificate.`, {
    values: () => [[[], facts().failures]],
  });
}

/** Seconds, as in Kubernetes: from a minute to four years. */
const LIFE_BUCKETS = [60, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000];

/** Declares how long serving certificates lived; the answer is told of each one that is used from now on. */
export function rotationMetrics(metrics: Metrics, clock: Clock): (pair: { readonly notBefore: number }) => void {
  const lived = metrics.histogram(
    "kubelet_certificate_manager_server_rotation_seconds",
    "How long a serving certificate lived before the next one came.",
    { buckets: LIFE_BUCKETS },
  );
  let previous: { readonly notBefore: number } | undefined;
  return (pair) => {
    if (previous !== undefined) lived.observe(Math.max(0, clock.now().wall - previous.notBefore) / 1000);
    previous = pair;
  };
}

function withSandbox(pods: readonly ObservedPod[]): number {
  return pods.filter(({ sandboxes }) => sandboxes.some(({ state }) => state === "ready")).length;
}

function containerStates(pods: readonly ObservedPod[]): Values {
  return tally(pods.flatMap(({ containers }) => containers.map(({ state }) => [state])));
}

/** How often each combination of labels is there. */
function tally(all: readonly LabelValues[]): Values {
  const counts = new Map<string, [LabelValues, number]>();
  for (const labels of all) {
    const key = labels.join("\0");
    const known = counts.get(key);
    if (known === undefined) counts.set(key, [labels, 1]);
    else known[1]++;
  }
  return counts.values();
}
