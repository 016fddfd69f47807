/** What the order of suites depends on. */
export interface Scheduled {
  readonly name: string;
  /** No other suite runs at the same time: it measures times, or takes most of the machine. */
  readonly isAlone: boolean;
  /** Suites with the same word here share something of the machine and never run at the same time. */
  readonly shares?: string | undefined;
}

/** Seconds that each suite took the last time, by its name. */
export type Durations = Readonly<Record<string, number>>;

/** Longest first, so that the lanes end together; what was never measured is taken for long. */
export function longestFirst<T extends Scheduled>(suites: readonly T[], durations: Durations): T[] {
  const lengthOf = ({ name }: T): number => durations[name] ?? Number.POSITIVE_INFINITY;
  return [...suites].sort((a, b) => {
    const [left, right] = [lengthOf(a), lengthOf(b)];
    return left === right ? 0 : right - left;
  });
}

/** Runs the suites, up to `lanes` at a time, each as soon as a lane is free and nothing that it must not meet runs. */
export async function runInLanes<T extends Scheduled>(
  suites: readonly T[],
  lanes: number,
  run: (suite: T) => Promise<void>,
): Promise<void> {
  const alone = suites.filter(({ isAlone }) => isAlone);
  const waiting = suites.filter(({ isAlone }) => !isAlone);
  const running = new Set<T>();
  const lane = async (): Promise<void> => {
    for (;;) {
      const index = waiting.findIndex((suite) => ![...running].some((other) => mustNotMeet(suite, other)));
      const [suite] = index < 0 ? [] : waiting.splice(index, 1);
      if (suite === undefined) {
        if (waiting.length === 0 || running.size === 0) return;
        await untilOneEnds();
        continue;
      }
      running.add(suite);
      await run(suite).finally(() => {
        running.delete(suite);
        for (const wake of wakers.splice(0)) wake();
      });
    }
  };
  const wakers: (() => void)[] = [];
  const untilOneEnds = (): Promise<void> => new Promise((resolve) => wakers.push(resolve));
  await Promise.all(Array.from({ length: lanes }, lane));
  for (const suite of alone) await run(suite);
}

function mustNotMeet(one: Scheduled, other: Scheduled): boolean {
  return one.shares !== undefined && one.shares === other.shares;
}
