import type { KubeApi } from "../src/adapters/kubeapi/port.ts";
import { Reflector } from "../src/adapters/kubeapi/reflector.ts";
import { NODES, PODS } from "../src/adapters/kubeapi/resources.ts";
import { manyListeners } from "../src/lib/abort.ts";
import { SystemClock } from "../src/lib/clock.ts";
import type { Node, Pod } from "../src/model/generated/types.ts";

const LIMIT_MS = 180_000;

/** A watch of all pods and nodes, and when something was first seen in it. */
export class Watched {
  private readonly stop = manyListeners();
  private readonly pods: Reflector<Pod>;
  private readonly nodes: Reflector<Node>;
  private readonly waiters = new Set<() => void>();

  constructor(readonly api: KubeApi) {
    const clock = new SystemClock();
    const tell = (): void => {
      for (const waiter of [...this.waiters]) waiter();
    };
    const common = { select: {}, firstList: "latest", onChange: tell, onSync: tell } as const;
    this.pods = new Reflector({ api, clock }, { ...common, resource: PODS });
    this.nodes = new Reflector({ api, clock }, { ...common, resource: NODES });
    void this.pods.run(this.stop);
    void this.nodes.run(this.stop);
  }

  /** Creates a pod on the node; the answer is the moment before the request. */
  async create(pod: Pod): Promise<number> {
    const at = performance.now();
    await this.api.create(PODS, { namespace: "default", object: pod }, this.stop);
    return at;
  }

  async remove(name: string): Promise<number> {
    const at = performance.now();
    await this.api.delete(PODS, { namespace: "default", name }, this.stop);
    return at;
  }

  pod(name: string): Pod | undefined {
    return this.pods.objects.get(`default/${name}`);
  }

  node(name: string): Node | undefined {
    return this.nodes.objects.get(name);
  }

  /** The moment at which the condition was first seen to hold. */
  until(what: string, holds: () => boolean): Promise<number> {
    return new Promise((resolve, reject) => {
      const limit = setTimeout(() => end(new Error(`not within ${LIMIT_MS} ms: ${what}`)), LIMIT_MS);
      const look = (): void => {
        if (holds()) end(undefined);
      };
      const end = (error: Error | undefined): void => {
        clearTimeout(limit);
        this.waiters.delete(look);
        if (error === undefined) resolve(performance.now());
        else reject(error);
      };
      this.waiters.add(look);
      look();
    });
  }

  close(): void {
    this.stop.abort();
  }
}

/** True when the object's condition `Ready` holds. */
export function isReady(object: Pod | Node | undefined): boolean {
  return object?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}
