import type { Clock } from "../lib/clock.ts";
import type { VolumeOfPod } from "./kind.ts";

/** A change of ownership that takes longer than this is reported, and then at this interval, as in Kubernetes. */
const FIRST_MS = 30_000;
const NEXT_MS = 60_000;

/** Reports the progress of a change of ownership in a large volume. */
export class GroupProgress {
  private due: number;

  constructor(
    private readonly deps: { clock: Clock; event(type: "Normal", reason: string, message: string): void },
    private readonly of: VolumeOfPod,
  ) {
    this.due = deps.clock.now().mono + FIRST_MS;
  }

  report(entries: number): void {
    const { mono } = this.deps.clock.now();
    if (mono < this.due) return;
    this.due = mono + NEXT_MS;
    const message = `Setting volume ownership for volume "${this.of.volume.name}" is taking longer than expected, ${entries} files so far; consider fsGroupChangePolicy: OnRootMismatch`;
    this.deps.event("Normal", "VolumePermissionChangeInProgress", message);
  }
}
