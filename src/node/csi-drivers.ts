import { ApiError, CSI_NODES, type KubeApi, NODES } from "../adapters/kubeapi/index.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { ownValue } from "../lib/own-value.ts";
import type { CSINode, CSINodeDriver, Node } from "../model/generated/types.ts";
import { csiNodeOf } from "./csi-node.ts";

/** Where other components find a driver's id of the node. */
const NODE_ID_ANNOTATION = "csi.volume.kubernetes.io/nodeid";
/** The largest count that the API takes. */
const MAX_COUNT = 2 ** 31 - 1;
/** Codes of the API server when somebody else was faster. */
const CONTENDED: ReadonlySet<string> = new Set(["Conflict", "AlreadyExists"]);
/** Attempts of one install; whoever registered the driver asks again later. */
const ATTEMPTS = 6;
const BACKOFF = { initialMs: 10, maxMs: 2000, jitter: 0.1 };

/** A driver and the node as it knows it. */
export interface NodeDriver {
  readonly name: string;
  readonly nodeId: string;
  /** 0: no limit. */
  readonly maxVolumes: number;
  readonly topology: Readonly<Record<string, string>>;
}

export interface CsiDriversDeps {
  readonly api: Pick<KubeApi, "get" | "create" | "update" | "patch">;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
}

/** Publishes the CSI drivers of the node: in its CSINode for scheduler and controllers, and on the Node object. */
export class CsiDriverReport {
  /** One change at a time: each begins with what the one before it left. */
  private turn: Promise<unknown> = Promise.resolve();
  private readonly installed = new Map<string, NodeDriver>();

  constructor(
    private readonly deps: CsiDriversDeps,
    private readonly nodeName: string,
    private readonly signal: AbortSignal,
  ) {}

  /** Adds or updates a driver; rejects if the API server does not take it in a few attempts. */
  async install(driver: NodeDriver, { signal }: Abortable): Promise<void> {
    const { name } = driver;
    const before = this.installed.get(name);
    this.installed.set(name, driver);
    try {
      await this.attempts(ATTEMPTS, signal, () => this.publish(driver, signal));
    } catch (error) {
      const isNewest = this.installed.get(name) === driver;
      if (isNewest && before === undefined) this.installed.delete(name);
      else if (isNewest && before !== undefined) this.installed.set(name, before);
      throw error;
    }
  }

  /** Publishes all drivers once more: the Node object or the CSINode was recreated. What is there is not written. */
  publishAgain(): void {
    const { signal } = this;
    for (const name of this.installed.keys()) {
      this.attempts(Number.POSITIVE_INFINITY, signal, async () => {
        const driver = this.installed.get(name);
        if (driver !== undefined) await this.publish(driver, signal);
      }).catch((error: unknown) => {
        if (isAborted(error, signal)) return;
        this.deps.log.warn("Failed to publish CSI driver", { driver: name, error: messageOf(error) });
      });
    }
  }

  private async publish(driver: NodeDriver, signal: AbortSignal): Promise<void> {
    const node = await this.changeNode((found) => installPatch(found, driver), signal);
    await this.changeCsiNode((drivers) => withDriver(drivers, driver), { signal, owner: node.metadata.uid });
  }

  /** Replaces what the CSINode says of a driver; rejects if the API server does not take it in a few attempts. */
  update(driver: NodeDriver, { signal }: Abortable): Promise<void> {
    return this.attempts(ATTEMPTS, signal, async () => {
      if (!this.installed.has(driver.name)) return;
      this.installed.set(driver.name, driver);
      await this.changeCsiNode((drivers) => withDriver(drivers, driver), { signal });
    });
  }

  /** Removes a driver, with attempts until it is gone or installed again. */
  uninstall(name: string): void {
    this.installed.delete(name);
    const { signal } = this;
    this.attempts(Number.POSITIVE_INFINITY, signal, async () => {
      if (this.installed.has(name)) return;
      await this.changeCsiNode((drivers) => withoutDriver(drivers, name), { signal });
      await this.changeNode((node) => uninstallPatch(node, name), signal);
    }).catch((error: unknown) => {
      if (!isAborted(error, signal)) this.deps.log.warn("Failed to remove CSI driver from node", { driver: name });
    });
  }

  private async changeNode(change: (node: Node) => object | undefined, signal: AbortSignal): Promise<Node> {
    const { api } = this.deps;
    const name = this.nodeName;
    const node = await api.get(NODES, { name }, { signal });
    const metadata = change(node);
    if (metadata === undefined) return node;
    const { resourceVersion } = node.metadata;
    const body = { metadata: { ...metadata, ...(resourceVersion !== undefined && { resourceVersion }) } };
    // The status sub-resource takes labels and annotations too, and is what a node may always write.
    await api.patch(NODES, { name, type: "merge", subresource: "status", body }, { signal });
    return node;
  }

  /** `owner`: the UID of the node that a CSINode is created for if there is none; else nothing is changed then. */
  private async changeCsiNode(
    change: (drivers: readonly CSINodeDriver[]) => readonly CSINodeDriver[] | undefined,
    { signal, owner }: Abortable & { readonly owner?: string | undefined },
  ): Promise<void> {
    const { api } = this.deps;
    const name = this.nodeName;
    const object = await this.csiNode({ signal, owner });
    const before = object?.spec.drivers ?? [];
    const drivers = change(before);
    if (object === undefined || drivers === undefined) return;
    const write = (of: CSINode, now: readonly CSINodeDriver[]): Promise<CSINode> =>
      api.update(CSI_NODES, { name, object: { ...of, spec: { ...of.spec, drivers: now } } }, { signal });
    const kept = drivers.filter((driver) => !isRemade(driver, before));
    await write(kept.length === drivers.length ? object : await write(object, kept), drivers);
  }

  private async csiNode({ signal, owner }: Abortable & { readonly owner?: string | undefined }) {
    const { api } = this.deps;
    const name = this.nodeName;
    try {
      return await api.get(CSI_NODES, { name }, { signal });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
    }
    return owner === undefined ? undefined : api.create(CSI_NODES, { object: csiNodeOf(name, owner) }, { signal });
  }

  private inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => undefined);
    return done;
  }

  /** Each attempt waits for its turn anew: one that fails for ever must not keep others from theirs. */
  private async attempts(most: number, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.deps;
    const backoff = new Backoff(BACKOFF);
    let lastError = "";
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.inTurn(work);
      } catch (error) {
        const isFinal = error instanceof TopologyConflictError;
        if (isFinal || isAborted(error, signal) || attempt >= most) throw error;
        const isUsual = error instanceof ApiError && CONTENDED.has(error.code);
        const message = messageOf(error);
        if (!isUsual && message !== lastError) log.warn("Failed to update CSI drivers of node", { error: message });
        lastError = message;
        await clock.sleep(backoff.next(clock.now()), { signal });
      }
    }
  }
}

/** A driver places the node elsewhere than another one did. */
class TopologyConflictError extends Error {
  override readonly name = "TopologyConflictError";
}

/** Returns the metadata that a driver adds to the node; undefined if it is there. Throws if its topology disagrees. */
export function installPatch({ metadata }: Node, { name, nodeId, topology }: NodeDriver): object | undefined {
  for (const [key, value] of Object.entries(topology)) {
    const have = ownValue(metadata.labels, key);
    if (have === undefined || have === value) continue;
    const [said, is] = [`"${key}":"${value}"`, `"${key}":"${have}"`];
    throw new TopologyConflictError(
      `detected topology value collision: driver reported ${said} but existing label is ${is}`,
    );
  }
  const ids = nodeIds(metadata.annotations);
  const labels = Object.entries(topology).filter(([key]) => ownValue(metadata.labels, key) === undefined);
  const isNamed = ids.get(name) === nodeId;
  if (isNamed && labels.length === 0) return undefined;
  ids.set(name, nodeId);
  return {
    ...(!isNamed && { annotations: { [NODE_ID_ANNOTATION]: JSON.stringify(Object.fromEntries(ids)) } }),
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
  };
}

/** Returns the metadata without a driver; undefined if it is not there. Labels stay, as in Kubernetes. */
export function uninstallPatch({ metadata }: Node, name: string): object | undefined {
  const ids = nodeIds(metadata.annotations);
  if (!ids.delete(name)) return undefined;
  return {
    annotations: { [NODE_ID_ANNOTATION]: ids.size === 0 ? null : JSON.stringify(Object.fromEntries(ids)) },
  };
}

/** True if an entry of the driver has to be removed first: the API server lets only its limit be changed. */
function isRemade(driver: CSINodeDriver, before: readonly CSINodeDriver[]): boolean {
  const fixed = ({ nodeID, topologyKeys = [] }: CSINodeDriver): string => JSON.stringify([nodeID, topologyKeys]);
  return before.some((old) => old.name === driver.name && fixed(old) !== fixed(driver));
}

/** Returns the drivers with this one; undefined if it is among them as it is. */
export function withDriver(
  drivers: readonly CSINodeDriver[],
  { name, nodeId, maxVolumes, topology }: NodeDriver,
): readonly CSINodeDriver[] | undefined {
  const count = maxVolumes > 0 ? Math.min(maxVolumes, MAX_COUNT) : undefined;
  const sorted = Object.keys(topology).sort();
  const known = drivers.find((driver) => driver.name === name);
  const hasKeys = JSON.stringify([...(known?.topologyKeys ?? [])].sort()) === JSON.stringify(sorted);
  if (known?.nodeID === nodeId && known.allocatable?.count === count && hasKeys) return undefined;
  const topologyKeys = hasKeys ? (known?.topologyKeys ?? []) : sorted;
  const driver = { name, nodeID: nodeId, topologyKeys, ...(count !== undefined && { allocatable: { count } }) };
  return [...drivers.filter((other) => other.name !== name), driver];
}

/** Returns the drivers without this one; undefined if it is not among them. */
export function withoutDriver(drivers: readonly CSINodeDriver[], name: string): readonly CSINodeDriver[] | undefined {
  const rest = drivers.filter((driver) => driver.name !== name);
  return rest.length === drivers.length ? undefined : rest;
}

function nodeIds(annotations: Readonly<Record<string, string>> | undefined): Map<string, string> {
  const text = ownValue(annotations, NODE_ID_ANNOTATION) ?? "{}";
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null)
    throw new Error(`node has an invalid annotation ${NODE_ID_ANNOTATION}`);
  return new Map(Object.entries(value as Record<string, string>)); // reason: written by kubelets only
}
