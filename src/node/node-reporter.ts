import { ApiError, type KubeApi, NODES } from "../adapters/kubeapi/index.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Live } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Node, NodeStatus } from "../model/generated/types.ts";
import { withoutExtended, withPatchedResources } from "./capacity.ts";
import { conditionEvents, isNodeReady, keepTimes } from "./conditions.ts";
import { initialNode, metadataPatch, type NodeIdentity, type NodeStatusFacts, nodeStatus } from "./node-object.ts";
import { registerNode } from "./node-registrar.ts";
import { rememberSent, type SentStatus, statusPatch } from "./status-patch.ts";

/** After the start the status is computed this often, for this long, until the node is ready. */
const FAST = { everyMs: 100, forMs: 120_000 };
/** A restarted agent does not report a ready node as not ready before this time, in milliseconds. */
const START_MS = 10_000;
/** Back-off after a failure, as in Kubernetes. */
const RETRY = { initialMs: 100, maxMs: 7000 };
/** Spreads the ticks of many nodes by this share. */
const JITTER = 0.04;

export interface NodeReporterDeps {
  /** Not rate limited: a node whose heartbeat is late loses its pods. */
  readonly api: Pick<KubeApi, "get" | "create" | "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** Gathers the facts of the status; `previous` is the status that the server has. */
  gather(previous: NodeStatus | undefined, options: Abortable): Promise<NodeStatusFacts>;
  event(type: "Normal" | "Warning", reason: string, message: string): void;
  /** Called once with the conditions of before this start that are true; returns true if the facts change with them. */
  inherit?(conditions: readonly string[]): boolean;
}

export interface NodeReporterOptions {
  readonly identity: NodeIdentity;
  readonly registers: boolean;
  /** True if extended resources of an existing Node object are stale: 0 of them is reported, once. */
  readonly zeroesExtended?: boolean;
  /** Milliseconds. */
  readonly frequency: Live<{ readonly updateMs: number; readonly reportMs: number }>;
}

/**
 * Registers the node once and reports its status. A Node object that is deleted while the agent runs is not created
 * again, as in Kubernetes; one that appears under its name is reported on.
 *
 *   unregistered ──create or reconcile──► registered ──tick: changed, or due──► PATCH status
 *                                          │      ▲
 *                                  deleted ▼      │ seen again
 *                                          missing ┘  GET at each tick
 */
export class NodeReporter {
  private node: Node | undefined;
  private last: SentStatus | undefined;
  private isRegistered = false;
  private isReady = false;
  private isZeroing = false;
  private hasInherited = false;
  /** Monotonic time until which a node that was ready before this start stays ready. */
  private startsUntil = 0;
  /** Monotonic time of the next report of an unchanged status. */
  private reportDue = 0;
  private woken = false;
  private wake: (() => void) | undefined;
  private readonly backoff: Backoff;
  private readonly listeners = new Listeners<Node>();
  private markSynced: () => void = () => undefined;

  constructor(
    private readonly deps: NodeReporterDeps,
    private readonly options: NodeReporterOptions,
  ) {
    this.backoff = new Backoff({ ...RETRY, jitter: 0.1, random: deps.random });
  }

  /** Resolves when the Node object was first read, or is known not to exist: labels are known from then on. */
  readonly synced = new Promise<void>((resolve) => {
    this.markSynced = resolve;
  });

  /** The newest known version of the Node object. */
  get current(): Node | undefined {
    return this.node;
  }

  /** Calls `fn` with each newer version of the Node object until the signal aborts. */
  onNode(fn: (node: Node) => void, options: Abortable): void {
    this.listeners.add(fn, options);
  }

  /** Takes the version that the watch delivered; undefined if the Node object was deleted. */
  observed(node: Node | undefined): void {
    if (node === undefined) {
      if (this.node !== undefined) this.deps.log.warn("Node object was deleted", { node: this.options.identity.name });
      this.node = undefined;
      this.last = undefined;
      return;
    }
    this.take(node);
  }

  /** The node watch has listed: the Node object is known, or does not exist. */
  watchSynced(): void {
    this.markSynced();
  }

  /** Fetches the Node object; for decisions that must not use a stale one. Failures are logged, never thrown. */
  async refetch({ signal }: Abortable): Promise<void> {
    const { name } = this.options.identity;
    try {
      this.take(await this.deps.api.get(NODES, { name }, { signal }));
    } catch (error) {
      if (!isAborted(error, signal))
        this.deps.log.warn("Failed to fetch node", { node: name, error: messageOf(error) });
    }
  }

  /** Computes the status now: something that it contains has changed. */
  kick(): void {
    this.woken = true;
    this.wake?.();
  }

  /** Runs until the signal aborts. Failures are logged and retried. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    const fastUntil = clock.now().mono + FAST.forMs;
    this.startsUntil = clock.now().mono + START_MS;
    this.options.frequency.onChange(() => this.kick(), { signal });
    while (!signal.aborted) {
      let waitMs: number;
      this.woken = false;
      try {
        await this.tick(signal);
        this.backoff.reset();
        const isFast = !this.isReady && clock.now().mono < fastUntil;
        waitMs = isFast ? FAST.everyMs : this.options.frequency.current.updateMs * (1 + JITTER * this.deps.random());
      } catch (error) {
        if (isAborted(error, signal)) return;
        if (error instanceof ApiError && error.code === "NotFound") this.observed(undefined);
        waitMs = this.backoff.next(clock.now());
        log.warn("Failed to update node status", { error: messageOf(error), waitMs: Math.round(waitMs) });
      }
      await this.sleep(waitMs, signal);
    }
  }

  private async tick(signal: AbortSignal): Promise<void> {
    const { identity } = this.options;
    const before = this.node?.status;
    const first =
      this.isRegistered || !this.options.registers ? await this.gather(signal) : await this.register(signal);
    this.node ??= await this.deps.api.get(NODES, { name: identity.name }, { signal });
    const found = this.inherits(this.node, first) ? await this.gather(signal) : first;
    const known = this.node.status?.conditions;
    const conditions = keepTimes(found.conditions ?? [], known);
    this.isReady = isNodeReady(conditions);
    if (!this.isReady && isNodeReady(known) && this.deps.clock.now().mono < this.startsUntil) return;
    this.startsUntil = 0;
    await this.report({ ...found, conditions }, signal);
    for (const reason of conditionEvents(before?.conditions, conditions)) {
      this.deps.event("Normal", reason, `Node ${identity.name} status is now: ${reason}`);
    }
  }

  /** Called with the Node object of before this start; true if the status has to be gathered again. */
  private inherits(before: Node, found: NodeStatus): boolean {
    if (this.hasInherited) return false;
    this.hasInherited = true;
    this.recordReboot(before, found);
    const holding = (before.status?.conditions ?? []).filter((condition) => condition.status === "True");
    return this.deps.inherit?.(holding.map(({ type }) => type)) ?? false;
  }

  private async gather(signal: AbortSignal): Promise<NodeStatus> {
    const facts = await this.deps.gather(this.node?.status, { signal });
    return nodeStatus(facts, this.options.identity.architecture);
  }

  /** Creates or reconciles the Node object; returns the status to report. */
  private async register(signal: AbortSignal): Promise<NodeStatus> {
    const { identity } = this.options;
    const found = await this.gather(signal);
    const { node, isNew } = await registerNode(this.deps, initialNode(identity, found), { signal });
    this.isRegistered = true;
    this.isZeroing = !isNew && this.options.zeroesExtended === true;
    this.take(node);
    // The object was created with this status.
    if (isNew) this.sent();
    // What a cloud controller manager has set is known only now, and takes precedence.
    return isNew || !identity.isExternalCloud ? found : this.gather(signal);
  }

  private async report(found: NodeStatus, signal: AbortSignal): Promise<void> {
    const { api, clock } = this.deps;
    const { identity } = this.options;
    const { name } = identity;
    this.node ??= await api.get(NODES, { name }, { signal });
    const { capacity = {}, allocatable = {} } = found;
    const known = this.isZeroing ? withoutExtended(this.node.status) : this.node.status;
    const status = { ...found, ...withPatchedResources({ capacity, allocatable }, known) };
    const refresh = clock.now().mono >= this.reportDue;
    const changes = statusPatch(status, { known: this.node.status, last: this.last, refresh });
    const metadata = metadataPatch(this.node, identity);
    if (changes === undefined && metadata === undefined) {
      this.isZeroing = false;
      return;
    }
    const body = { ...(metadata && { metadata }), ...changes };
    const answer = await api.patch(NODES, { name, type: "strategic", subresource: "status", body }, { signal });
    this.isZeroing = false;
    this.last = rememberSent(changes?.status ?? {}, { status, answer: answer.status ?? {}, last: this.last });
    this.sent();
    this.take(answer);
  }

  /** The server has the current status: the next report without a change is due later. */
  private sent(): void {
    const { reportMs } = this.options.frequency.current;
    // Spread over half the period either way, so that nodes that started together drift apart.
    this.reportDue = this.deps.clock.now().mono + reportMs * (0.5 + this.deps.random());
  }

  private take(node: Node): void {
    if (isOlder(node, this.node)) return;
    const isSchedulable = node.spec.unschedulable !== true;
    if (this.node !== undefined && (this.node.spec.unschedulable !== true) !== isSchedulable) {
      const reason = isSchedulable ? "NodeSchedulable" : "NodeNotSchedulable";
      this.deps.event("Normal", reason, `Node ${this.options.identity.name} status is now: ${reason}`);
    }
    this.node = node;
    this.listeners.call(node);
  }

  private recordReboot(found: Node, { nodeInfo }: NodeStatus): void {
    const then = found.status?.nodeInfo?.bootID;
    const now = nodeInfo?.bootID;
    if (!then || !now || then === now) return;
    const { name } = this.options.identity;
    this.deps.event("Warning", "Rebooted", `Node ${name} has been rebooted, boot id: ${now}`);
  }

  private sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (this.woken || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        signal.removeEventListener("abort", done);
        this.wake = undefined;
        resolve();
      };
      const timer = this.deps.clock.after(ms, done);
      this.wake = done;
      signal.addEventListener("abort", done, { once: true });
    });
  }
}

/** Resource versions are growing numbers (guaranteed since 1.35); others are taken in the order of arrival. */
function isOlder(node: Node, known: Node | undefined): boolean {
  if (known === undefined || known.metadata.uid !== node.metadata.uid) return false;
  const [mine, its] = [known.metadata.resourceVersion ?? "", node.metadata.resourceVersion ?? ""];
  return /^\d+$/.test(mine) && /^\d+$/.test(its) && BigInt(its) < BigInt(mine);
}
