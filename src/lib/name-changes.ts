import type { Clock, Timer } from "./clock.ts";

/** A change reported to the owner of a watch. `rescan`: list everything again; `name` is empty then. */
export interface PathChange {
  readonly kind: "removed" | "appeared" | "changed" | "rescan";
  readonly name: string;
}

/** What happened to a name, as the directory watcher reports it. */
export type NameEvent = "created" | "deleted" | "movedTo" | "movedFrom" | "written";

/** A file written in place is read only after this long without a further write, in milliseconds. */
export const SETTLE_MS = 20;

interface Pending {
  readonly kind: "appeared" | "changed";
  readonly timer: Timer;
}

/**
 * Turns raw events of names into changes. A removal and a rename are reported at once; a creation or a write in place
 * only when the name has been quiet, because a cut-off YAML parses. A rename over a name that was there is one change;
 * a removal is always reported, even when the name is back at once.
 *
 *   absent ──created──► settling ──quiet──► present ──written──► settling ──quiet──► present
 *      ▲────────────── deleted, movedFrom ─────┘  └─movedTo─► present
 */
export class NameChanges {
  private readonly present = new Set<string>();
  private readonly pending = new Map<string, Pending>();

  constructor(
    private readonly clock: Clock,
    private readonly emit: (change: PathChange) => void,
  ) {}

  feed(name: string, event: NameEvent): void {
    const pending = this.pending.get(name);
    switch (event) {
      case "deleted":
      case "movedFrom":
        this.settle(name);
        this.present.delete(name);
        // Created and removed before it was reported: there is nothing to report.
        if (pending?.kind !== "appeared") this.emit({ kind: "removed", name });
        return;
      case "movedTo": {
        const isReplaced = this.present.has(name) && pending?.kind !== "appeared";
        this.settle(name);
        this.present.add(name);
        this.emit({ kind: isReplaced ? "changed" : "appeared", name });
        return;
      }
      case "created":
        this.present.add(name);
        return this.wait(name, "appeared");
      case "written":
        return this.wait(name, pending?.kind ?? "changed");
    }
  }

  has(name: string): boolean {
    return this.present.has(name);
  }

  /** Marks what exists now as known, without reporting it. */
  know(names: Iterable<string>): void {
    for (const name of names) this.present.add(name);
  }

  /** Drops all state, pending changes too: a rescan follows. */
  clear(): void {
    for (const name of [...this.pending.keys()]) this.settle(name);
    this.present.clear();
  }

  private wait(name: string, kind: Pending["kind"]): void {
    this.settle(name);
    const timer = this.clock.after(SETTLE_MS, () => {
      this.pending.delete(name);
      this.emit({ kind, name });
    });
    this.pending.set(name, { kind, timer });
  }

  private settle(name: string): void {
    this.pending.get(name)?.timer.cancel();
    this.pending.delete(name);
  }
}
