import { type Abortable, isAborted } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { Lane } from "../../lib/lane.ts";
import { type Live, select } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { CheckSchedule } from "./check-schedule.ts";
import { LogMeter } from "./log-meter.ts";
import { type ContainerLog, type RotateDeps, type RotationFiles, recover, rotate } from "./rotate.ts";

/** A restarted agent takes up interrupted rotations this long after it saw the container. */
const RECOVER_AFTER_MS = 5000;

/** Limits of container logs; `containerLogMaxSize` and its like. */
export interface RotationOptions {
  /** Bytes at which a log is rotated; negative turns rotation off. */
  readonly maxBytes: number;
  /** Files per log, the current one included. */
  readonly maxFiles: number;
  /** Rotations, and compressions, at the same time. */
  readonly workers: number;
  /** The longest time between two checks of a growing log. */
  readonly intervalMs: number;
}

export interface RotatorDeps {
  readonly files: RotationFiles;
  readonly runtime: RotateDeps["runtime"];
  readonly clock: Clock;
  readonly log: Logger;
  /** All pods, for when rotation is turned on while they run. */
  pods(): Iterable<ObservedPod>;
}

interface Followed {
  readonly uid: string;
  readonly log: ContainerLog;
  readonly meter: LogMeter;
}

/** Rotates the logs of running containers, of all kinds, while they grow. Told of containers by `follow`. */
export class LogRotator {
  private readonly followed = new Map<string, Followed>();
  /** Paths of the temporary files that are being written. */
  private readonly busy = new Set<string>();
  private readonly rotations: Lane;
  private readonly compressions: Lane;
  private readonly rotateDeps: RotateDeps;
  private readonly checks: CheckSchedule;

  constructor(
    private readonly deps: RotatorDeps,
    private readonly options: Live<RotationOptions>,
    private readonly signal: AbortSignal,
  ) {
    const workers = select(options, ({ workers: most }) => Math.max(1, most));
    this.rotations = new Lane(workers, { signal });
    this.compressions = new Lane(workers, { signal });
    this.checks = new CheckSchedule(deps.clock);
    this.rotateDeps = { files: deps.files, runtime: deps.runtime, now: () => deps.clock.now().wall };
    options.onChange(() => this.optionsChanged(), { signal });
    signal.addEventListener("abort", () => this.closeAll(), { once: true });
  }

  /** Takes over which containers of a pod run; undefined when the pod is gone. */
  follow(uid: string, pod: Pick<ObservedPod, "containers"> | undefined): void {
    if (this.signal.aborted) return;
    const running = (pod?.containers ?? []).filter(({ state, logPath }) => state === "running" && logPath !== "");
    const ids = new Set(running.map(({ id }) => id));
    for (const [id, { uid: owner, meter }] of this.followed) {
      if (owner !== uid || ids.has(id)) continue;
      meter.close();
      this.followed.delete(id);
    }
    if (this.options.current.maxBytes < 0) return;
    for (const { id, logPath } of running) if (!this.followed.has(id)) this.begin(uid, id, logPath);
  }

  private begin(uid: string, id: string, logPath: string): void {
    const slash = logPath.lastIndexOf("/");
    const log = { id, directory: logPath.slice(0, slash), base: logPath.slice(slash + 1) };
    const meter = new LogMeter(
      logPath,
      {
        files: this.deps.files,
        clock: this.deps.clock,
        checks: this.checks,
        maxBytes: () => this.options.current.maxBytes,
        intervalMs: () => this.options.current.intervalMs,
        act: (state) => (state === "full" ? this.rotate(log) : this.reopen(log)),
        failed: (error) => this.deps.log.error("Failed to rotate container log", error, { containerID: id, logPath }),
      },
      this.signal,
    );
    this.followed.set(id, { uid, log, meter });
    this.deps.clock.after(RECOVER_AFTER_MS, () => {
      if (this.followed.get(id)?.meter === meter) void this.recover(log);
    });
  }

  private async rotate(log: ContainerLog): Promise<void> {
    const { signal } = this;
    const { maxFiles } = this.options.current;
    const work = () => rotate(this.rotateDeps, { log, maxFiles, ...this.busyOf(log) }, { signal });
    const names = await this.rotations.run(work, { signal });
    this.deps.log.debug(2, "Rotated container log", { containerID: log.id, logPath: `${log.directory}/${log.base}` });
    this.compress(log, names);
  }

  /** A running container without a log file: a rotation was interrupted between the rename and the reopening. */
  private async reopen({ id, directory, base }: ContainerLog): Promise<void> {
    this.deps.log.warn("Container log is missing, reopening it", { containerID: id, logPath: `${directory}/${base}` });
    await this.deps.runtime.reopenContainerLog(id, { signal: this.signal });
  }

  private async recover(log: ContainerLog): Promise<void> {
    const { maxFiles } = this.options.current;
    try {
      this.compress(log, await recover(this.rotateDeps, { log, maxFiles, ...this.busyOf(log) }));
    } catch (error) {
      this.deps.log.error("Failed to recover interrupted log rotation", error, { containerID: log.id });
    }
  }

  /** In the background: a rotation never waits for a compression. */
  private compress(log: ContainerLog, names: readonly string[]): void {
    for (const name of names) {
      const path = `${log.directory}/${name}`;
      const temporary = `${path}.gz.tmp`;
      if (this.busy.has(temporary)) continue;
      this.busy.add(temporary);
      this.compressions
        .run(() => this.deps.files.compress(path, `${path}.gz`, this.abortable), this.abortable)
        .catch((error: unknown) => {
          if (isAborted(error, this.signal)) return;
          this.deps.log.error("Failed to compress rotated container log", error, { path });
        })
        .finally(() => this.busy.delete(temporary));
    }
  }

  private busyOf({ directory }: ContainerLog): { isBusy(name: string): boolean } {
    return { isBusy: (name) => this.busy.has(`${directory}/${name}`) };
  }

  private get abortable(): Abortable {
    return { signal: this.signal };
  }

  private optionsChanged(): void {
    if (this.options.current.maxBytes < 0) this.closeAll();
    else {
      for (const pod of this.deps.pods()) this.follow(pod.uid, pod);
      for (const { meter } of this.followed.values()) meter.recheck();
    }
  }

  private closeAll(): void {
    for (const { meter } of this.followed.values()) meter.close();
    this.followed.clear();
  }
}
