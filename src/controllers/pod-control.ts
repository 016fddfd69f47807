import { ApiError, PODS } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Pod, PodTemplateSpec } from "../model/generated/types.ts";
import type { ControllerDeps } from "./controller.ts";
import type { RecordEvent } from "./event-sink.ts";
import type { Informer } from "./informers.ts";
import { controllerReference, type Owner } from "./owned-objects.ts";

/** Pods that are written at once: each takes the API half a millisecond, and others get a turn after them. */
const MOST_AT_ONCE = 32;

/** A pod to create: without a name it gets one with the owner's as its beginning. */
export interface NewPod {
  readonly template: PodTemplateSpec;
  readonly name?: string;
  readonly generateName?: string;
}

/** Creates and deletes pods of an owner, with the events that Kubernetes records. */
export class PodControl {
  private readonly pods: Informer<Pod>;

  constructor(
    private readonly deps: ControllerDeps,
    private readonly record: RecordEvent,
  ) {
    this.pods = deps.informers.of(PODS);
  }

  /** Rejects with `ApiError`. */
  async create(owner: Owner, { template, ...names }: NewPod, options: Abortable): Promise<Pod> {
    const { namespace = "", name: ownerName = "" } = owner.object.metadata;
    const object = podOfTemplate(template, owner, names);
    try {
      const pod = await this.deps.api.create(PODS, { namespace, object }, options);
      this.pods.wrote(pod);
      this.event(owner, { type: "Normal", reason: "SuccessfulCreate", message: `Created pod: ${pod.metadata.name}` });
      return pod;
    } catch (error) {
      if (error instanceof ApiError && !isNamespaceTerminating(error)) {
        this.event(owner, { type: "Warning", reason: "FailedCreate", message: `Error creating: ${error.message}` });
        const context = { owner: `${namespace}/${ownerName}`, error: error.message };
        this.deps.log.debug(2, "Failed to create pod", context);
      }
      throw error;
    }
  }

  /** Creates several, in batches of 1, 2, 4, … up to 32: if all fail alike, only the first does. Resolves with how many. */
  async createMany(
    owner: Owner,
    { count, podOf }: { readonly count: number; podOf(index: number): NewPod },
    options: Abortable,
  ): Promise<number> {
    let made = 0;
    for (let batch = 1; made < count; batch = Math.min(batch * 2, MOST_AT_ONCE)) {
      const indexes = Array.from({ length: Math.min(batch, count - made) }, (_value, index) => made + index);
      const results = await Promise.allSettled(indexes.map((index) => this.create(owner, podOf(index), options)));
      made += results.filter(({ status }) => status === "fulfilled").length;
      const failed = results.find((result) => result.status === "rejected");
      if (failed !== undefined) {
        if (failed.reason instanceof ApiError && isNamespaceTerminating(failed.reason)) return made;
        throw failed.reason;
      }
    }
    return made;
  }

  /** Deletes several. Rejects with the first `ApiError`, after all of its batch. */
  async deleteMany(owner: Owner, pods: readonly Pod[], options: Abortable): Promise<void> {
    for (let begin = 0; begin < pods.length; begin += MOST_AT_ONCE) {
      const batch = pods.slice(begin, begin + MOST_AT_ONCE);
      const results = await Promise.allSettled(batch.map((pod) => this.delete(owner, pod, options)));
      for (const result of results) if (result.status === "rejected") throw result.reason;
    }
  }

  /** A pod that is gone already counts as deleted. Rejects with `ApiError`. */
  async delete(owner: Owner, pod: Pod, options: Abortable): Promise<void> {
    const { namespace = "", name = "", uid = "" } = pod.metadata;
    try {
      await this.deps.api.delete(PODS, { namespace, name, uid }, options);
      this.pods.deleted(pod);
      this.event(owner, { type: "Normal", reason: "SuccessfulDelete", message: `Deleted pod: ${name}` });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "NotFound") return;
      this.event(owner, { type: "Warning", reason: "FailedDelete", message: `Error deleting: ${error.message}` });
      throw error;
    }
  }

  private event(owner: Owner, event: { type: "Normal" | "Warning"; reason: string; message: string }): void {
    this.record({ ...event, resource: owner.resource, object: owner.object });
  }
}

/** True if nothing can be created because the namespace is being deleted: there is nothing to retry. */
export function isNamespaceTerminating({ status }: ApiError): boolean {
  return status?.details?.causes?.some(({ reason }) => reason === "NamespaceTerminating") === true;
}

/** A pod as a template describes it, managed by an owner. */
export function podOfTemplate(
  template: PodTemplateSpec,
  owner: Owner,
  names: { readonly name?: string; readonly generateName?: string },
): Pod {
  const { labels, annotations, finalizers } = template.metadata ?? {};
  const { namespace = "", name = "" } = owner.object.metadata;
  return {
    metadata: {
      ...(names.name === undefined ? { generateName: names.generateName ?? `${name}-` } : { name: names.name }),
      namespace,
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(finalizers && { finalizers }),
      ownerReferences: [controllerReference(owner)],
    },
    spec: template.spec ?? { containers: [] },
  };
}
