import type { OverviewLine } from "../model/page-lines.ts";
import type { PageView } from "./page-deps.ts";

/** What a stream has sent of the pods. A change costs work for one pod. */
export class SentPods {
  /** The text of each by UID. */
  private readonly sent = new Map<string, string>();
  private readonly dirty = new Set<string>();
  private isFirst = true;

  constructor(private readonly view: Pick<PageView, "summaries" | "summary">) {}

  /** A pod may have changed. */
  changed(uid: string): void {
    this.dirty.add(uid);
  }

  /** Finds pods that came or went without a call of `changed`. */
  audit(): void {
    const present = new Set(this.view.summaries().map(({ uid }) => uid));
    for (const uid of present) if (!this.sent.has(uid)) this.dirty.add(uid);
    for (const uid of this.sent.keys()) if (!present.has(uid)) this.dirty.add(uid);
  }

  /** The difference to what was sent; undefined if there is none. */
  next(): OverviewLine["pods"] {
    const uids = this.isFirst ? this.view.summaries().map(({ uid }) => uid) : [...this.dirty];
    this.dirty.clear();
    const set = [];
    const gone = [];
    for (const uid of uids) {
      const pod = this.view.summary(uid);
      if (pod === undefined) {
        if (this.sent.delete(uid)) gone.push(uid);
        continue;
      }
      const text = JSON.stringify(pod);
      if (this.sent.get(uid) === text) continue;
      this.sent.set(uid, text);
      set.push(pod);
    }
    const isNews = this.isFirst || set.length > 0 || gone.length > 0;
    this.isFirst = false;
    return isNews ? { set, gone } : undefined;
  }
}
