import type { KernelLogHandler, KernelRecord } from "../../adapters/host/kernel-log.ts";
import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { untilAborted } from "../../lib/loop.ts";
import { type CgroupOwner, ownerOfCgroup } from "../../model/cgroup-path.ts";
import { type OomKill, OomParser } from "./parse-oom.ts";

/** How far the kernel's log was read: what is behind it is reported, also after a restart of the agent. */
export interface OomState {
  readonly bootId: string;
  /** Of the last kill that was reported; -1 if none was. */
  readonly sequence: number;
  /** Microseconds since the boot: older kills are not reported. */
  readonly sinceMicros: number;
}

/** A kill in a container of a pod. */
export type ContainerOomKill = OomKill & CgroupOwner;

export interface OomWatcherDeps {
  readonly log: Logger;
  /** Reads the kernel's log from its oldest message on until the signal aborts. */
  follow(handler: KernelLogHandler, options: Abortable): Promise<void>;
  readonly bootId: string;
  /** Microseconds since the boot. */
  uptimeMicros(): number;
  readonly state: { load(): OomState | undefined; save(state: OomState): Promise<void> };
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
  /** Called for each kill. */
  counted?(scope: "system" | "container"): void;
  /** Called for each kill in a container. */
  killed?(kill: ContainerOomKill): void;
}

/**
 * Reports what the kernel kills for lack of memory: an event if the whole machine was short, as in Kubernetes, and a
 * call for each container. Each kill is reported once, also one that happened while no agent ran, such as that of the
 * agent itself; on the first start of all only those from then on.
 */
export class OomWatcher {
  private readonly parser = new OomParser();
  private saving: Promise<void> | undefined;
  /** What is to be saved when the write that goes on is done. */
  private unsaved: OomState | undefined;

  constructor(private readonly deps: OomWatcherDeps) {}

  /** Runs until the signal aborts. A log that cannot be read is one warning. */
  async run(signal: AbortSignal): Promise<void> {
    const { deps } = this;
    const known = deps.state.load();
    let state: OomState = known ?? { bootId: deps.bootId, sequence: -1, sinceMicros: deps.uptimeMicros() };
    if (known === undefined) this.save(state);
    else if (known.bootId !== deps.bootId) state = { bootId: deps.bootId, sequence: -1, sinceMicros: 0 };
    const record = ({ isKernel, text, sequence, bootMicros }: KernelRecord): void => {
      const kill = isKernel ? this.parser.parse(text) : undefined;
      if (kill === undefined) return;
      if (sequence <= state.sequence || bootMicros < state.sinceMicros) return;
      state = { ...state, sequence };
      this.save(state);
      this.report(kill);
    };
    const lost = (): void => deps.log.warn("Kernel overwrote messages before they were read, OOM kills may be missed");
    try {
      await deps.follow({ record, lost }, { signal });
    } catch (error) {
      deps.log.warn("Failed to read the kernel log, OOM kills are not reported", { error: messageOf(error) });
    }
    await untilAborted(signal);
    await this.saving;
  }

  private report(kill: OomKill): void {
    const { deps } = this;
    const { process, pid } = kill;
    const owner = ownerOfCgroup(kill.cgroup);
    deps.counted?.(kill.isSystem ? "system" : "container");
    deps.log.warn("Kernel killed process for lack of memory", {
      process,
      pid,
      cgroup: kill.cgroup,
      scope: kill.isSystem ? "system" : "cgroup",
    });
    if (kill.isSystem) {
      deps.event("Warning", "SystemOOM", `System OOM encountered, victim process: ${process}, pid: ${pid}`);
    }
    if (owner !== undefined) deps.killed?.({ ...kill, ...owner });
  }

  /**
   * One write at a time, of the newest state: a container may have processes killed faster than a disk takes writes. A
   * failed one only means that a restarted agent may report the kill again.
   */
  private save(state: OomState): void {
    this.unsaved = state;
    this.saving ??= this.write();
  }

  private async write(): Promise<void> {
    for (let state = this.unsaved; state !== undefined; state = this.unsaved) {
      this.unsaved = undefined;
      await this.deps.state.save(state).catch((error: unknown) => {
        this.deps.log.warn("Failed to save state of OOM kills", { error: messageOf(error) });
      });
    }
    this.saving = undefined;
  }
}
