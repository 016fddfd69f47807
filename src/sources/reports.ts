import type { SourceProblem } from "./snapshot.ts";

/** Tells each problem of a file once: again only when it went away and came back, or is another one. */
export class Reports {
  private readonly told = new Map<string, Set<string>>();

  constructor(private readonly report: (problem: SourceProblem) => void) {}

  /** Takes over all problems that a file has now; none means that it is well. */
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

  /** The file is gone: its problems are forgotten. */
  forget(file: string): void {
    this.told.delete(file);
  }
}
