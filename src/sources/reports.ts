import type { SourceProblem } from "./snapshot.ts";

/** Reports each problem of a file once, and again only if it was resolved and came back, or changed. */
export class Reports {
  private readonly told = new Map<string, Set<string>>();

  constructor(private readonly report: (problem: SourceProblem) => void) {}

  /** Replaces the problems of a file; none means that it is valid. */
  set(file: string, problems: readonly Omit<SourceProblem, "file">[]): void {
    const before = this.told.get(file);
    const now = new Set<string>();
    for (const problem of problems) {
      const key = `${problem.line ?? ""}:${problem.message}`;
      if (!now.has(key) && !before?.has(key)) this.report({ file, ...problem });
      now.add(key);
    }
    if (now.size === 0) this.told.delete(file);
    else this.told.set(file, now);
  }

  /** The file was removed: its problems are dropped. */
  forget(file: string): void {
    this.told.delete(file);
  }
}
