import type { KubeApi, ObjectRef, Resource } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { orAborted } from "../lib/or-aborted.ts";
import { getOrUndefined } from "./api-get.ts";

interface Read<T> extends Abortable {
  readonly at: ObjectRef;
  resolve(object: T | undefined | Promise<T | undefined>): void;
}

/**
 * Reads objects of one kind; those that are asked for in one turn of the event loop are read together. For objects that
 * are polled: an agent that does nothing else spends its CPU time on the steps of each request.
 */
export class GroupedReads<T> {
  private group: Read<T>[] = [];

  constructor(
    private readonly api: Pick<KubeApi, "get" | "getTogether">,
    private readonly resource: Resource<T>,
    /** Aborts when the agent stops. */
    private readonly signal: AbortSignal,
  ) {}

  /** Returns the object, or undefined if it does not exist; other failures reject. */
  get(at: ObjectRef, { signal }: Abortable): Promise<T | undefined> {
    const read = new Promise<T | undefined>((resolve) => {
      this.group.push({ at, signal, resolve });
      if (this.group.length === 1) void Promise.resolve().then(() => this.flush());
    });
    return orAborted(read, signal);
  }

  /** Never rejects: each reader gets the failure of its own read, or of all of them. */
  private async flush(): Promise<void> {
    const { group, api, resource } = this;
    this.group = [];
    const all = group.length > 1 ? this.together(group.map(({ at }) => at)) : Promise.resolve(undefined);
    await all.catch(() => undefined);
    for (const [index, { at, signal, resolve }] of group.entries()) {
      resolve(all.then((found) => found?.[index] ?? getOrUndefined(api, resource, { at, signal })));
    }
  }

  /** Undefined where each is to be read on its own. Rejects only if the agent stops, or for a bug. */
  private async together(refs: readonly ObjectRef[]): Promise<readonly (T | undefined)[] | undefined> {
    return this.api.getTogether?.(this.resource, refs, { signal: this.signal });
  }
}
