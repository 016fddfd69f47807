import { NODES, PODS } from "../../adapters/kubeapi/index.ts";
import { jsonAnswer, type RouteAnswer } from "../../adapters/net/http-route.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { ObjectMeta } from "../../model/generated/types.ts";
import type { NodeUsageReport, PodUsageLine, UsageLine } from "../../model/node-usage.ts";
import { type OperationDeps, timeText } from "../operations/context.ts";
import type { ApiCall } from "../rest/api-call.ts";
import type { MeasuredGroup } from "../rest/api-handler.ts";
import type { ApiPath } from "../rest/api-path.ts";
import { parseLabelQuery } from "../select/label-query.ts";
import { methodNotAllowed, notFound } from "../status/status-error.ts";

const GROUP = "metrics.k8s.io";
const VERSION = "v1beta1";
const API_VERSION = `${GROUP}/${VERSION}`;
const READ = ["get", "list"] as const;

export interface MetricsDeps extends OperationDeps {
  readonly nodeName: string;
  /** The usage of now. */
  usage(options: Abortable): Promise<NodeUsageReport>;
}

/** `metrics.k8s.io`, by which `kubectl top` shows usage: the samples of the agent. */
export function metricsGroup(deps: MetricsDeps): MeasuredGroup {
  const common = { group: GROUP, version: VERSION, singular: "", verbs: READ };
  return {
    resources: [
      { ...common, plural: "nodes", kind: "NodeMetrics", isNamespaced: false },
      { ...common, plural: "pods", kind: "PodMetrics", isNamespaced: true },
    ],
    handle: (path, call) => (path.group === GROUP ? answer(deps, path, call) : undefined),
  };
}

async function answer(deps: MetricsDeps, path: ApiPath, { request }: ApiCall): Promise<RouteAnswer> {
  if (request.method !== "GET") throw methodNotAllowed();
  const isSelected = parseLabelQuery(request.query.get("labelSelector") ?? "");
  const usage = await deps.usage(request);
  const all = path.plural === "nodes" ? nodeMetrics(deps, usage) : podMetrics(deps, usage);
  const resource = { group: GROUP, plural: path.plural };
  const wanted = all.filter(({ metadata }) => path.namespace === "" || metadata.namespace === path.namespace);
  if (path.name !== "") {
    const found = wanted.find(({ metadata }) => metadata.name === path.name);
    if (found === undefined) throw notFound(resource, path.name);
    return jsonAnswer(200, found);
  }
  const items = wanted.filter(({ metadata }) => isSelected(metadata.labels ?? {}));
  const kind = path.plural === "nodes" ? "NodeMetricsList" : "PodMetricsList";
  return jsonAnswer(200, { kind, apiVersion: API_VERSION, metadata: {}, items });
}

interface MetricsObject {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: ObjectMeta;
  readonly usage?: object;
  readonly containers?: readonly object[];
}

function nodeMetrics({ store, nodeName }: MetricsDeps, { node }: NodeUsageReport): readonly MetricsObject[] {
  const metadata = metadataOf(store.get(NODES.plural, { namespace: "", name: nodeName })?.shared(), { name: nodeName });
  return [{ kind: "NodeMetrics", apiVersion: API_VERSION, metadata, ...measured(node), usage: usageOf(node) }];
}

function podMetrics({ store }: MetricsDeps, { pods }: NodeUsageReport): readonly MetricsObject[] {
  return pods.map((pod: PodUsageLine) => {
    const { namespace, name } = pod;
    const metadata = metadataOf(store.get(PODS.plural, { namespace, name })?.shared(), { name, namespace });
    const containers = pod.containers.map((container) => ({ name: container.name, usage: usageOf(container) }));
    return { kind: "PodMetrics", apiVersion: API_VERSION, metadata, ...measured(pod), containers };
  });
}

/** Name, labels and the time of creation, as metrics-server shows them. */
function metadataOf(object: { readonly metadata?: unknown } | undefined, place: ObjectMeta): ObjectMeta {
  const { labels, creationTimestamp } = (object?.metadata ?? {}) as ObjectMeta; // reason: stored objects have it
  return { ...place, ...(creationTimestamp && { creationTimestamp }), ...(labels && { labels }) };
}

function measured({ at }: UsageLine): object {
  return { timestamp: timeText(at), window: "10s" };
}

function usageOf({ nanoCores = 0, workingSetBytes }: UsageLine): object {
  return { cpu: `${Math.round(nanoCores)}n`, memory: `${Math.round(workingSetBytes / 1024)}Ki` };
}
