import type { Machine } from "../integration/support/machine.ts";

/**
 * Tells which suite left something on the machine, while several run at the same time. What carries a suite's mark is
 * that suite's; the rest is laid to all suites that ran when it appeared.
 */
export class Leftovers {
  private readonly known: Set<string>;
  private readonly running = new Set<string>();
  /** What appeared without a mark, and the marks of the suites that may have made it. */
  private readonly unmarked = new Map<string, ReadonlySet<string>>();
  /** Suites that ran since the last look, even if they have ended. */
  private sinceLook = new Set<string>();

  constructor(private readonly read: (marks: readonly string[]) => Machine) {
    this.known = new Set(read([]).keys());
  }

  /** A suite is about to begin: what is here now is not its. */
  begin(mark: string): void {
    this.look();
    this.running.add(mark);
    this.sinceLook.add(mark);
  }

  /** What a suite left with its mark on it, once everything on its way out had time to go. */
  async end(mark: string, settle: Settle): Promise<string[]> {
    const left = await settled(() => this.markedBy(mark), settle);
    this.look();
    this.running.delete(mark);
    this.sinceLook = new Set(this.running);
    return left;
  }

  /** What is still there without a mark when all suites have ended, with the marks of those who may have left it. */
  async rest(settle: Settle): Promise<{ what: string; suspects: readonly string[] }[]> {
    this.look();
    const find = (): string[] => {
      const now = this.read([...this.everMarked]);
      return [...this.unmarked.keys()].filter((what) => now.has(what) && now.get(what) === undefined);
    };
    const left = await settled(find, settle);
    return left.map((what) => ({ what, suspects: [...(this.unmarked.get(what) ?? [])] }));
  }

  private readonly everMarked = new Set<string>();

  private look(): void {
    for (const mark of this.sinceLook) this.everMarked.add(mark);
    for (const [what, mark] of this.read([...this.everMarked])) {
      if (mark !== undefined || this.known.has(what) || this.unmarked.has(what)) continue;
      this.unmarked.set(what, new Set(this.sinceLook));
    }
    this.sinceLook = new Set(this.running);
  }

  private markedBy(mark: string): string[] {
    const machine = this.read([mark]);
    return [...machine].filter(([what, owner]) => owner === mark && !this.known.has(what)).map(([what]) => what);
  }
}

/** How long to wait for what is on its way out (a shim, an unmount), and how. */
export interface Settle {
  readonly limitMs: number;
  readonly pause: () => Promise<void>;
  readonly now: () => number;
}

async function settled(find: () => string[], { limitMs, pause, now }: Settle): Promise<string[]> {
  const until = now() + limitMs;
  for (;;) {
    const found = find();
    if (found.length === 0 || now() > until) return found;
    await pause();
  }
}
