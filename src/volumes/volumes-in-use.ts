import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { type Live, LiveValue } from "../lib/live.ts";
import { VolumePendingError } from "./volume-error.ts";

/** The volumes in one version of the node's status on the API server. */
export interface NodeVolumes {
  readonly inUse: readonly string[];
  readonly attached: readonly string[];
  /** Where the attach controller says that a device is, by the name of its volume. */
  readonly devicePaths?: Readonly<Record<string, string>>;
}

/** A volume by the name that the attach controller has for it, and the stage that uses it: several may use one disk. */
export interface VolumeUse {
  readonly name: string;
  /** The directory of the stage. */
  readonly stage: string;
}

/** A stage of which it is not known what it uses: its metadata cannot be read, or is lost while something is mounted. */
export interface UnnamedStage {
  /** The directory of the stage. */
  readonly stage: string;
  /** True if the volume of this name may be the one; `isNamed`: another stage is known to use it, or did. */
  mayUse(name: string, of: { readonly isNamed: boolean }): boolean;
}

export interface VolumesInUseDeps {
  readonly clock: Clock;
  /**
   * The newest version of the node's status, undefined before the first. The attach controller takes a volume off its list
   * of attached ones before it looks whether it is in use, and then detaches it: a version that has it on both lists means
   * that it stays.
   */
  readonly reported: Live<NodeVolumes | undefined>;
}

/** How long a mount waits for the node's status before it reports what it waits for, in milliseconds. */
const REPORT_LIMIT_MS = 10_000;
/** The words of Kubernetes. */
const NOT_IN_USE = "Volume has not been added to the list of VolumesInUse in the node's volume status";
export const NOT_ATTACHED = "Volume not attached according to node status";

/** The attachable volumes that this node uses, and the wait for what the API server has of them. */
export class VolumesInUse {
  /** The stages that use a volume, by its name. */
  private readonly stages = new Map<string, Set<string>>();
  private readonly published = new LiveValue<readonly string[] | undefined>(undefined);
  private isRestored = false;
  /** Stages that were unmounted before `restore`, which may have been told of them. */
  private readonly gone = new Set<string>();
  /** By their directories. */
  private readonly unnamed = new Map<string, UnnamedStage>();
  /** Names that some stage has or had. */
  private readonly named = new Set<string>();

  constructor(private readonly deps: VolumesInUseDeps) {}

  /**
   * The names for `volumesInUse` of the node's status: set before a volume is mounted, until it is unmounted. Undefined
   * before `restore`: an empty list would allow to detach what an earlier agent left mounted.
   */
  get live(): Live<readonly string[] | undefined> {
    return this.published;
  }

  /**
   * Takes over the volumes that an earlier agent left staged. An unnamed stage keeps in use what it may be of all that the
   * API server has as attached or in use, from the first version of the node's status on: nothing is reported before that.
   */
  restore(uses: readonly VolumeUse[], rest?: Abortable & { readonly unnamed: readonly UnnamedStage[] }): void {
    this.isRestored = true;
    for (const one of rest?.unnamed ?? []) if (!this.gone.has(one.stage)) this.unnamed.set(one.stage, one);
    for (const use of uses) if (!this.gone.has(use.stage)) this.add(use);
    this.gone.clear();
    if (rest !== undefined && this.unnamed.size > 0) this.deps.reported.onChange(() => this.publish(), rest);
    this.publish();
  }

  /** Resolves once the API server has the volume as in use. */
  async use(use: VolumeUse, options: Abortable): Promise<void> {
    const { name } = use;
    this.gone.delete(use.stage);
    this.add(use);
    this.publish();
    await this.until(({ inUse }) => inUse.includes(name), NOT_IN_USE, options);
  }

  /** Resolves to the version of the node's status that has the volume both as in use and as attached. */
  async attached(name: string, options: Abortable): Promise<NodeVolumes> {
    const isBoth = ({ inUse, attached }: NodeVolumes): boolean => inUse.includes(name) && attached.includes(name);
    return this.until(isBoth, NOT_ATTACHED, options);
  }

  /** The stage does not use the volume any more. */
  remove({ name, stage }: VolumeUse): void {
    if (!this.isRestored) this.gone.add(stage);
    const wasUnnamed = this.unnamed.delete(stage);
    const stages = this.stages.get(name);
    if (stages?.delete(stage) === true && stages.size === 0) this.stages.delete(name);
    else if (!wasUnnamed) return;
    this.publish();
  }

  /** The directory of the stage was removed without its metadata. */
  discarded(stage: string): void {
    if (!this.isRestored) this.gone.add(stage);
    if (this.unnamed.delete(stage)) this.publish();
  }

  private add({ name, stage }: VolumeUse): void {
    this.unnamed.delete(stage);
    this.named.add(name);
    this.stages.set(name, (this.stages.get(name) ?? new Set()).add(stage));
  }

  /** What unnamed stages may use; undefined while it is not known what there is. */
  private possible(): readonly string[] | undefined {
    if (this.unnamed.size === 0) return [];
    const { current } = this.deps.reported;
    if (current === undefined) return undefined;
    const others = [...new Set([...current.inUse, ...current.attached])].filter((name) => !this.stages.has(name));
    const mayBeUsed = (name: string): boolean => {
      const of = { isNamed: this.named.has(name) };
      return [...this.unnamed.values()].some((one) => one.mayUse(name, of));
    };
    return others.filter(mayBeUsed);
  }

  private publish(): void {
    const possible = this.isRestored ? this.possible() : undefined;
    if (possible === undefined) return;
    const names = [...this.stages.keys(), ...possible].sort();
    if (names.join("\n") !== this.published.current?.join("\n")) this.published.set(names);
  }

  /** Resolves to the version of the node's status that meets it. */
  private async until(
    isMet: (now: NodeVolumes) => boolean,
    waitsFor: string,
    { signal }: Abortable,
  ): Promise<NodeVolumes> {
    const { reported, clock } = this.deps;
    if (reported.current !== undefined && isMet(reported.current)) return reported.current;
    const scope = new AbortScope([signal]);
    try {
      return await new Promise<NodeVolumes>((resolve, reject) => {
        const late = clock.after(REPORT_LIMIT_MS, () => reject(new VolumePendingError(waitsFor)));
        scope.signal.addEventListener("abort", () => {
          late.cancel();
          if (signal.aborted) reject(signal.reason as Error); // reason: an abort of ours always has an Error
        });
        reported.onChange((now) => now !== undefined && isMet(now) && resolve(now), scope);
      });
    } finally {
      scope.abort();
      scope.dispose();
    }
  }
}
