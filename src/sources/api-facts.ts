import {
  type ApiError,
  type KubeApi,
  type KubeObject,
  Reflector,
  type Resource,
  RUNTIME_CLASSES,
  SERVICES,
} from "../adapters/kubeapi/index.ts";
import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod, RuntimeClass, Service } from "../model/generated/types.ts";
import { isStaticPod } from "../model/pod-facts.ts";
import { serviceVariables } from "../model/service-env.ts";

/** How long the start of a pod waits for the first list, in milliseconds. */
const FIRST_LIST_MS = 10_000;

interface FactsDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** All objects of a kind, listed and watched. */
class Followed<T extends KubeObject> {
  private readonly reflector: Reflector<T>;
  private readonly waiters = new Set<() => void>();

  constructor(
    private readonly deps: FactsDeps,
    resource: Resource<T>,
  ) {
    this.reflector = new Reflector(deps, {
      resource,
      select: {},
      firstList: "cached",
      onSync: () => {
        for (const waiter of this.waiters) waiter();
        this.waiters.clear();
      },
      onError: ({ code, message }: ApiError) =>
        deps.log.warn("Failed to watch objects", { kind: resource.kind, code, error: message }),
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.reflector.run({ signal });
  }

  /** Objects of a checkpoint, used until the first list. */
  fallback: readonly T[] | undefined;

  /** The known objects, without waiting. */
  peek(): Iterable<T> {
    return this.reflector.hasSynced ? this.reflector.objects.values() : (this.fallback ?? []);
  }

  /** Waits for the first list; rejects with `problem` if it does not come in time. */
  async objects(problem: string, { signal }: Abortable): Promise<ReadonlyMap<string, T>> {
    if (this.reflector.hasSynced) return this.reflector.objects;
    if (this.fallback !== undefined)
      return new Map(this.fallback.map((object) => [object.metadata.name ?? "", object]));
    const scope = new AbortScope([signal], { clock: this.deps.clock, ms: FIRST_LIST_MS });
    try {
      await new Promise<void>((resolve) => {
        this.waiters.add(resolve);
        scope.signal.addEventListener("abort", () => resolve(), { once: true });
      });
    } finally {
      scope.dispose();
    }
    signal.throwIfAborted();
    if (!this.reflector.hasSynced) throw new Error(problem);
    return this.reflector.objects;
  }
}

/** Services, which become environment variables of pods, and RuntimeClasses. */
export class ApiFacts {
  private readonly services: Followed<Service>;
  private readonly classes: Followed<RuntimeClass>;

  constructor(deps: FactsDeps) {
    this.services = new Followed(deps, SERVICES);
    this.classes = new Followed(deps, RUNTIME_CLASSES);
  }

  /** Restores a checkpoint; it is used until the first list. */
  restore(services: readonly Service[], classes: readonly RuntimeClass[]): void {
    this.services.fallback = services;
    this.classes.fallback = classes;
  }

  /** Returns the services and RuntimeClasses that these pods use. */
  known(pods: readonly Pod[]): { services: readonly Service[]; runtimeClasses: readonly RuntimeClass[] } {
    const namespaces = new Set(["default", ...pods.map(({ metadata }) => metadata.namespace)]);
    const classes = new Set(pods.map(({ spec }) => spec.runtimeClassName));
    return {
      services: [...this.services.peek()].filter(({ metadata }) => namespaces.has(metadata.namespace)),
      runtimeClasses: [...this.classes.peek()].filter(({ metadata }) => classes.has(metadata.name)),
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.services.run(signal), this.classes.run(signal)]);
  }

  /** Variables of the services that the pod may see; a static pod gets those known now, as it must not wait for a list. */
  async serviceVariables(pod: Pod, options: Abortable): Promise<ReadonlyMap<string, string>> {
    if (isStaticPod(pod)) return serviceVariables(pod, this.services.peek());
    const problem = "services have not yet been read at least once, cannot construct envvars";
    return serviceVariables(pod, (await this.services.objects(problem, options)).values());
  }

  /** The handler as far as it is known now; undefined for a class that is not. */
  knownHandlerOf({ spec }: Pod): string | undefined {
    const name = spec.runtimeClassName ?? "";
    if (name === "") return "";
    return [...this.classes.peek()].find(({ metadata }) => metadata.name === name)?.handler;
  }

  /** Returns the runtime handler of the pod's RuntimeClass; empty for the default. Rejects if the class does not exist. */
  async handlerOf(pod: Pod, options: Abortable): Promise<string> {
    const name = pod.spec.runtimeClassName ?? "";
    if (name === "") return "";
    const classes = await this.classes.objects("runtime classes have not been read yet", options);
    const found = classes.get(name);
    if (found === undefined)
      throw new Error(`failed to get sandbox runtime: RuntimeClass ${JSON.stringify(name)} not found`);
    return found.handler;
  }
}
