import { ApiError, type KubeApi, NODES } from "../adapters/kubeapi/index.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Live } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Node, NodeStatus } from "../model/generated/types.ts";
import { conditionEvents, isNodeReady, keepTimes } from "./conditions.ts";
import { initialNode, lostLabels, type NodeIdentity, type NodeStatusFacts, nodeStatus } from "./node-object.ts";
import { registerNode } from "./node-registrar.ts";
import { rememberSent, type SentStatus, statusPatch } from "./status-patch.ts";

/** At the start the first Ready is looked for this often, for this long. */
const FAST = { everyMs: 100, forMs: 120_000 };
/** A node that was ready is not called unready by a new start before it had this long to find its runtime. */
const START_MS = 10_000;
/** Between two tries after a failure, as in Kubernetes. */
const RETRY = { initialMs: 100, maxMs: 7000 };
/** Ticks of many nodes spread by this share. */
const JITTER = 0.04;

export interface NodeReporterDeps {
  /** Without a rate limit: a node that cannot say that it lives loses its pods. */
  readonly api: Pick<KubeApi, "get" | "create" | "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** Looks at everything anew; `previous` is the status that the server has. */
  gather(previous: NodeStatus | undefined, options: Abortable): Promise<NodeStatusFacts>;
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

export interface NodeReporterOptions {
  readonly identity: NodeIdentity;
  readonly registers: boolean;
  /** Milliseconds. */
  readonly frequency: Live<{ readonly updateMs: number; readonly reportMs: number }>;
}

/**
 * Registers the node and keeps its status true.
 *
 *   unregistered ──create or reconcile──► registered ──tick: changed, or due──► PATCH status
 *        ▲                                     │
 *        └────────── the node is gone ◄────────┘
 */
export class NodeReporter {
  private node: Node | undefined;
  private last: SentStatus | undefined;
  private isRegistered = false;
  private isReady = false;
  /** Monotonic time until which a node that was ready before this start is given time. */
  private startsUntil = 0;
  /** Monotonic time of the next report of an unchanged status. */
  private reportDue = 0;
  private woken = false;
  private wake: (() => void) | undefined;
  private readonly backoff: Backoff;
  private readonly listeners = new Set<(node: Node) => void>();

  constructor(
    private readonly deps: NodeReporterDeps,
    private readonly options: NodeReporterOptions,
  ) {
    this.backoff = new Backoff({ ...RETRY, jitter: 0.1, random: deps.random });
  }

  /** The node as the server had it last. */
  get current(): Node | undefined {
    return this.node;
  }

  /** Calls `fn` with each newer version of the node until the signal aborts. */
  onNode(fn: (node: Node) => void, { signal }: Abortable): void {
    this.listeners.add(fn);
    signal.addEventListener("abort", () => void this.listeners.delete(fn), { once: true });
  }

  /** The server's version, as a watch tells it; undefined when the node was deleted. */
  observed(node: Node | undefined): void {
    if (node === undefined) {
      this.isRegistered = false;
      this.node = undefined;
      this.last = undefined;
      this.kick();
      return;
    }
    this.take(node);
  }

  /** Looks again now: something that the status tells has changed. */
  kick(): void {
    this.woken = true;
    this.wake?.();
  }

  /** Runs until the signal aborts. Failures are logged and tried again. */
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
        log.warn("the state of the node could not be sent", { error: messageOf(error), waitMs: Math.round(waitMs) });
      }
      await this.sleep(waitMs, signal);
    }
  }

  private async tick(signal: AbortSignal): Promise<void> {
    const { identity } = this.options;
    const before = this.node?.status;
    const facts = await this.deps.gather(before, { signal });
    const found = nodeStatus(facts, identity.architecture);
    if (!this.isRegistered && this.options.registers) {
      const { node, isNew } = await registerNode(this.deps, initialNode(identity, found), { signal });
      this.isRegistered = true;
      this.tellReboot(node, found);
      this.take(node);
      // It was made with this status.
      if (isNew) this.sent();
    }
    this.node ??= await this.deps.api.get(NODES, { name: identity.name }, { signal });
    const known = this.node.status?.conditions;
    const conditions = keepTimes(found.conditions ?? [], known);
    this.isReady = isNodeReady(conditions);
    if (!this.isReady && isNodeReady(known) && this.deps.clock.now().mono < this.startsUntil) return;
    // From now on it is what it says.
    this.startsUntil = 0;
    await this.report({ ...found, conditions }, signal);
    for (const reason of conditionEvents(before?.conditions, conditions)) {
      this.deps.event("Normal", reason, `Node ${identity.name} status is now: ${reason}`);
    }
  }

  private async report(status: NodeStatus, signal: AbortSignal): Promise<void> {
    const { api, clock } = this.deps;
    const { identity } = this.options;
    const { name } = identity;
    this.node ??= await api.get(NODES, { name }, { signal });
    const refresh = clock.now().mono >= this.reportDue;
    const changes = statusPatch(status, { known: this.node.status, last: this.last, refresh });
    const labels = lostLabels(this.node, identity);
    if (changes === undefined && labels === undefined) return;
    const body = { ...(labels && { metadata: { labels } }), ...changes };
    const answer = await api.patch(NODES, { name, type: "strategic", subresource: "status", body }, { signal });
    this.last = rememberSent(changes?.status ?? {}, { status, answer: answer.status ?? {}, last: this.last });
    this.sent();
    this.take(answer);
  }

  /** The server has the status of now. */
  private sent(): void {
    const { reportMs } = this.options.frequency.current;
    // Spread over half the period either way, so that nodes that came up together part.
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
    for (const listener of [...this.listeners]) listener(node);
  }

  private tellReboot(found: Node, { nodeInfo }: NodeStatus): void {
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

/** Versions are numbers that grow (a promise of the server since 1.35); others are taken as they come. */
function isOlder(node: Node, known: Node | undefined): boolean {
  if (known === undefined || known.metadata.uid !== node.metadata.uid) return false;
  const [mine, its] = [known.metadata.resourceVersion ?? "", node.metadata.resourceVersion ?? ""];
  return /^\d+$/.test(mine) && /^\d+$/.test(its) && BigInt(its) < BigInt(mine);
}
