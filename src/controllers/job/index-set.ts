/** Far more than one node ever runs; a short text can name billions. */
const MOST_INDEXES = 200_000;

/** Indexes of a list such as `1,3-5`, below a number. What is not a number, or too many, is left out. Pure. */
export function parseIndexes(text: string | undefined, below: number): ReadonlySet<number> {
  const indexes = new Set<number>();
  let left = MOST_INDEXES;
  for (const part of (text ?? "").split(",")) {
    const found = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (found === null) continue;
    const first = Number(found[1]);
    const last = Math.min(Number(found[2] ?? found[1]), below - 1);
    for (let index = first; index <= last && left > 0; index++, left--) indexes.add(index);
  }
  return indexes;
}

/** The shortest list of some indexes: `1,3-5`; two neighbours are written `1,2`. Pure. */
export function formatIndexes(indexes: ReadonlySet<number>): string {
  const sorted = [...indexes].sort((a, b) => a - b);
  const runs: { first: number; last: number }[] = [];
  for (const index of sorted) {
    const run = runs.at(-1);
    if (run !== undefined && run.last === index - 1) run.last = index;
    else runs.push({ first: index, last: index });
  }
  return runs
    .map(({ first, last }) => (first === last ? `${first}` : `${first}${last === first + 1 ? "," : "-"}${last}`))
    .join(",");
}
