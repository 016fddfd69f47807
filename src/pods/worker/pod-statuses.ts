import type { Abortable } from "../../lib/abort.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { PodStatus } from "../../model/generated/types.ts";

/** The last status of each pod, by UID, and who is notified of a new one. */
export class PodStatuses {
  private readonly byUid = new Map<string, PodStatus>();
  private readonly listeners = new Listeners<string>();

  get(uid: string): PodStatus | undefined {
    return this.byUid.get(uid);
  }

  publish(uid: string, status: PodStatus): void {
    this.byUid.set(uid, status);
    this.notify(uid);
  }

  delete(uid: string): void {
    this.byUid.delete(uid);
  }

  /** Calls the listeners; also when a pod stopped or is gone, which its status does not show. */
  notify(uid: string): void {
    this.listeners.call(uid);
  }

  /** Calls `fn` with the UID after each new status, until the signal aborts. */
  onChange(fn: (uid: string) => void, options: Abortable): void {
    this.listeners.add(fn, options);
  }
}
