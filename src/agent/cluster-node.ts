import { randomUUID } from "node:crypto";
import { NODES, Reflector } from "../adapters/kubeapi/index.ts";
import { type Abortable, AbortScope } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import { messageOf } from "../lib/errors.ts";
import { LiveValue, select } from "../lib/live.ts";
import type { Node } from "../model/generated/types.ts";
import { CsiNodeKeeper, configConditions, LeaseKeeper, NodeReporter } from "../node/index.ts";
import { composeClusterConfig } from "./cluster-config.ts";
import type { ClusterDeps, ClusterRing, Loop } from "./cluster-parts.ts";
import { NodeGatherer } from "./node.ts";
import { beginnings, startupMetrics } from "./startup-metrics.ts";

/** The node, its lease and its CSINode. */
export function composeClusterNode(
  deps: ClusterDeps,
  ring: ClusterRing,
): { reporter: NodeReporter; loops: readonly Loop[] } {
  const { clock, log, connection, store, nodeName, dynamic } = deps;
  const api = connection.clients.heartbeat;
  const event = (type: "Normal" | "Warning", reason: string, message: string): void =>
    ring.journal.event({ type, reason, message, subject: nodeName });
  const gatherer = new NodeGatherer({
    ...{ runtime: ring.runtime, images: ring.images, clock, store, addresses: connection.addresses },
    problems: () => [csi.problem].filter((problem) => problem !== undefined),
    moreConditions: (previous, now) => (dynamic === undefined ? [] : configConditions(dynamic.report(), previous, now)),
  });
  const reporter: NodeReporter = new NodeReporter(
    { api, clock, log, random: Math.random, event, gather: (previous, call) => gatherer.gather(previous, call) },
    {
      identity: gatherer.identity(nodeName),
      registers: store.current.registerNode,
      frequency: select(store.live("nodeStatusUpdateFrequency", "nodeStatusReportFrequency"), (o) => ({
        updateMs: o.nodeStatusUpdateFrequency,
        reportMs: o.nodeStatusReportFrequency,
      })),
    },
  );
  const csi = new CsiNodeKeeper(
    {
      ...{ api: connection.clients.calls, clock, log },
      nodeUid: ({ signal, not }) => nextUid(reporter, { signal, not }),
      done: () => reporter.kick(),
    },
    nodeName,
  );
  const lease = new LeaseKeeper(
    {
      ...{ api, clock, log, random: Math.random },
      nodeUid: () => reporter.current?.metadata.uid,
      rival: (message) => {
        log.error("two agents have the same node name", new Error(message));
        event("Warning", "NodeNameConflict", message);
      },
    },
    {
      nodeName,
      instance: randomUUID(),
      durationSeconds: select(store.live("nodeLeaseDurationSeconds"), (o) => o.nodeLeaseDurationSeconds),
    },
  );
  const watch = new Reflector<Node>(
    { api: connection.clients.calls, clock },
    {
      resource: NODES,
      select: { fieldSelector: `metadata.name=${nodeName}` },
      firstList: "latest",
      onChange: ({ kind, object }) => reporter.observed(kind === "deleted" ? undefined : object),
      onError: ({ code, message }) => log.warn("the node cannot be watched", { code, error: message }),
    },
  );
  event("Normal", "Starting", "Starting kubelet.");
  const startup = startupMetrics(deps.metrics, clock, beginnings(clock));
  startup.follow(reporter, { signal: deps.signal });
  return {
    reporter,
    loops: [
      {
        name: "node",
        run: (signal) => {
          startup.registering();
          return reporter.run(signal);
        },
      },
      { name: "lease", run: (signal) => lease.run(signal) },
      { name: "CSI node", run: (signal) => csi.run(signal) },
      { name: "pod CIDR", run: (signal) => followPodCidr(deps, { reporter, ring }, signal) },
      { name: "node watch", run: (signal) => watch.run({ signal }) },
      ...(dynamic === undefined ? [] : composeClusterConfig({ ...deps, dynamic }, { reporter, event })),
    ],
  };
}

/** 2.7: the runtime hears which addresses the cluster gave to the pods of this node, again after each failure. */
async function followPodCidr(
  { clock, log }: ClusterDeps,
  { reporter, ring }: { readonly reporter: NodeReporter; readonly ring: ClusterRing },
  signal: AbortSignal,
): Promise<void> {
  const cidr = new LiveValue(cidrOf(reporter.current));
  reporter.onNode((node) => cidr.set(cidrOf(node)), { signal });
  const backoff = new Backoff({ initialMs: 500, maxMs: 30_000 });
  let told = "";
  while (!signal.aborted) {
    const wanted = cidr.current;
    if (wanted === told || wanted === "") {
      await nextChange(cidr, signal);
      continue;
    }
    try {
      await ring.runtime.setPodCidr(wanted, { signal });
      told = wanted;
      backoff.reset();
      log.info("the runtime knows the addresses of pods", { podCidr: wanted });
    } catch (error) {
      if (signal.aborted) return;
      log.warn("the runtime could not be told the addresses of pods", { podCidr: wanted, error: messageOf(error) });
      await clock.sleep(backoff.next(clock.now()), { signal }).catch(() => undefined);
    }
  }
}

function cidrOf(node: Node | undefined): string {
  return (node?.spec.podCIDRs ?? []).join(",") || (node?.spec.podCIDR ?? "");
}

function nextChange(value: LiveValue<string>, signal: AbortSignal): Promise<void> {
  const scope = new AbortScope([signal]);
  return new Promise<void>((resolve) => {
    scope.signal.addEventListener("abort", () => resolve(), { once: true });
    value.onChange(() => scope.abort(), scope);
    if (scope.signal.aborted) resolve();
  }).finally(() => scope.dispose());
}

/** The node's UID as soon as it is another one than `not`. */
function nextUid(reporter: NodeReporter, { signal, not }: Abortable & { not: string | undefined }): Promise<string> {
  return new Promise((resolve, reject) => {
    const look = (node: Node | undefined): void => {
      const uid = node?.metadata.uid;
      if (uid !== undefined && uid !== not) resolve(uid);
    };
    // The reason of an abort is an error by this project's own rule.
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    reporter.onNode(look, { signal });
    look(reporter.current);
  });
}
