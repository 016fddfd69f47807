import type { ObservedPod } from "../../model/observed.ts";

/** Terminated containers by id, or all that is left of a stopped pod in the runtime. */
export type Discarded = ReadonlySet<string> | "all";

/** What a worker was asked to remove before its time, because the node has too much of it. */
export class Discards {
  private readonly ids = new Set<string>();
  private waiting: (() => void)[] = [];
  isAll = false;

  /** Resolves when it is removed, or the pod is gone. */
  ask(what: Discarded): Promise<void> {
    if (what === "all") this.isAll = true;
    else for (const id of what) this.ids.add(id);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  get isEmpty(): boolean {
    return !this.isAll && this.ids.size === 0;
  }

  has(id: string): boolean {
    return this.isAll || this.ids.has(id);
  }

  /** Drops the ids of containers that no longer exist, or that a pod which is not stopped keeps. */
  retain({ containers }: ObservedPod): void {
    if (this.isEmpty) return;
    const isNewest = (name: string, id: string): boolean => containers.find((one) => one.name === name)?.id === id;
    const removable = containers.filter(({ id, name, state }) => state === "exited" && !isNewest(name, id));
    const ids = new Set(removable.map(({ id }) => id));
    for (const id of this.ids) if (!ids.has(id)) this.ids.delete(id);
    if (this.isEmpty) this.done();
  }

  /** Nothing is left of what was asked for. */
  done(): void {
    this.ids.clear();
    this.isAll = false;
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}
