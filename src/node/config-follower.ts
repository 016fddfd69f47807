import type { ApiError } from "../adapters/kubeapi/index.ts";
import type { ConfigMapVersion, Follow } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { ownValue } from "../lib/own-value.ts";
import { Wakes } from "../lib/wakes.ts";
import type { ConfigMap, Node } from "../model/generated/types.ts";
import { type ConfigAssignment, configAssignment, type WantedConfigMap } from "./config-assignment.ts";
import { ConfigMapWatch, type ConfigMapWatchDeps } from "./config-map-watch.ts";

/** Back-off of reads and writes: a permission that was granted meanwhile is noticed within this time. */
const RETRY = { initialMs: 1000, maxMs: 15_000, jitter: 0.1 };

/** The dynamic configuration of this node, as far as the cluster assigns it. */
export interface FollowingConfiguration {
  assign(text: string, version: ConfigMapVersion, abortable: Abortable): Promise<void>;
  release(why: string): Promise<void>;
  follow(followed: Follow | undefined): void;
}

/** The Node object; undefined until it is known. */
export interface OwnNode {
  readonly current: Node | undefined;
  onNode(fn: (node: Node) => void, options: Abortable): void;
}

/** `waits`: for a response. `retries`: no event will signal that the next attempt can succeed. */
type Outcome =
  | { readonly kind: "done" | "waits" }
  | { readonly kind: "failed"; readonly why: string; readonly retries?: boolean };

export interface ConfigFollowerDeps extends ConfigMapWatchDeps {
  readonly log: Logger;
  readonly dynamic: FollowingConfiguration;
  readonly node: OwnNode;
}

/**
 * Applies the configuration that the Node object assigns.
 *
 *   Node names a ConfigMap ──► watched ──each version──► checkpoint, assigned, on trial
 *     │                          └─deleted, forbidden, key missing─► the one in force stays, the reason is reported
 *     └─names none──► the local configuration
 */
export class ConfigFollower {
  private assignment: ConfigAssignment | undefined;
  private watch: ConfigMapWatch | undefined;
  /** Monotonic time of the next retry. */
  private retryAt: number | undefined;
  private readonly wakes: Wakes;

  constructor(
    private readonly deps: ConfigFollowerDeps,
    private readonly nodeName: string,
  ) {
    this.wakes = new Wakes(deps.clock);
  }

  /** Runs until the signal aborts. Failures are reported and retried. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, node, random } = this.deps;
    const backoff = new Backoff({ ...RETRY, random });
    node.onNode(() => this.wakes.wake(), { signal });
    let told = "";
    while (!signal.aborted) {
      const now = clock.now();
      const isDue = this.retryAt !== undefined && now.mono >= this.retryAt;
      if (isDue) this.retryAt = undefined;
      this.look({ signal, isDue });
      const outcome = await this.sync(signal);
      if (signal.aborted) break;
      const why = outcome.kind === "failed" ? outcome.why : "";
      if (why !== "" && why !== told) log.warn("Failed to load assigned configuration", { why });
      if (outcome.kind === "done") backoff.reset();
      if (outcome.kind !== "waits") told = why;
      if (outcome.kind === "failed" && outcome.retries === true) this.retryAt ??= now.mono + backoff.next(now);
      else this.retryAt = undefined;
      await this.wakes.sleep(this.retryAt === undefined ? undefined : this.retryAt - now.mono, signal);
    }
    this.watch?.close();
  }

  /** Applies the current assignment; reopens a watch that was rejected when its retry is due. */
  private look({ signal, isDue }: Abortable & { readonly isDue: boolean }): void {
    const { node } = this.deps;
    if (node.current === undefined) return;
    const assignment = configAssignment(node.current);
    const isSame = JSON.stringify(assignment) === JSON.stringify(this.assignment);
    if (isSame && (!isDue || this.watch === undefined || this.watch.isOpen)) return;
    this.assignment = assignment;
    this.retryAt = undefined;
    this.watch?.close();
    const changed = (): void => this.wakes.wake();
    this.watch =
      assignment.kind === "configMap" ? new ConfigMapWatch(this.deps, assignment, { signal, changed }) : undefined;
  }

  /** Syncs the current assignment. */
  private async sync(signal: AbortSignal): Promise<Outcome> {
    const { dynamic } = this.deps;
    const wanted = this.assignment;
    if (wanted === undefined) return { kind: "waits" };
    let outcome: Outcome;
    try {
      outcome = await this.take(wanted, { signal });
    } catch (error) {
      outcome = { kind: "failed", why: messageOf(error), retries: true };
    }
    if (outcome.kind === "waits" || signal.aborted) return outcome;
    const error = outcome.kind === "failed" && { error: outcome.why };
    dynamic.follow(wanted.kind === "none" ? undefined : { by: wanted.by, ...error });
    return outcome;
  }

  private async take(wanted: ConfigAssignment, abortable: Abortable): Promise<Outcome> {
    const { dynamic } = this.deps;
    if (wanted.kind === "invalid") return { kind: "failed", why: wanted.why };
    if (wanted.kind === "none") {
      await dynamic.release("the Node names no configuration any more");
      return { kind: "done" };
    }
    const seen = this.watch?.seen ?? { kind: "nothing" };
    switch (seen.kind) {
      case "nothing":
        return { kind: "waits" };
      case "error":
        return { kind: "failed", why: this.refusal(wanted, seen.error), retries: this.watch?.isOpen !== true };
      case "missing":
        return { kind: "failed", why: `there is no ConfigMap ${wanted.namespace}/${wanted.name}` };
      case "found": {
        const found = versionOf(seen.object, wanted);
        if (typeof found === "string") return { kind: "failed", why: found };
        await dynamic.assign(found.text, found.version, abortable);
        return { kind: "done" };
      }
      default:
        return seen satisfies never;
    }
  }

  private refusal({ namespace, name }: WantedConfigMap, { code, message }: ApiError): string {
    if (code !== "Forbidden") return `ConfigMap ${namespace}/${name} cannot be read: ${message}`;
    return (
      `this node may not read ConfigMap ${namespace}/${name}: it needs a Role in namespace ${namespace} with the verbs ` +
      `get, list and watch on configmaps named ${name}, and a RoleBinding of it to the user system:node:${this.nodeName} ` +
      `or the group system:nodes (${message})`
    );
  }
}

/** Returns the configuration in a ConfigMap, or why there is none. Pure. */
function versionOf(
  object: ConfigMap,
  { namespace, name, key, uid: wantedUid }: WantedConfigMap,
): { readonly text: string; readonly version: ConfigMapVersion } | string {
  const { uid = "", resourceVersion = "" } = object.metadata;
  const path = `${namespace}/${name}`;
  if (wantedUid !== undefined && wantedUid !== uid) {
    return `ConfigMap ${path} has the UID ${uid}, and ${wantedUid} is wanted`;
  }
  const text = ownValue(object.data, key);
  if (text === undefined) return `ConfigMap ${path} has no data named ${key}`;
  return { text, version: { namespace, name, uid, resourceVersion, key } };
}
