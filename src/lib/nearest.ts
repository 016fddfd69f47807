/** The candidates that `word` was probably meant to be, nearest first; empty when none is near. */
export function nearest(word: string, candidates: Iterable<string>, limit = 3): string[] {
  const wanted = word.toLowerCase();
  // A third of the letters may be wrong: enough for slips, too little for a different word.
  const tolerance = Math.max(1, Math.floor(wanted.length / 3));
  const ranked: { candidate: string; score: number }[] = [];
  for (const candidate of candidates) {
    const name = candidate.toLowerCase();
    const isPart = wanted.length >= 2 && (name.includes(wanted) || (name.length >= 3 && wanted.includes(name)));
    const score = isPart ? 0 : editDistance(wanted, name, tolerance);
    if (score <= tolerance) ranked.push({ candidate, score });
  }
  ranked.sort((a, b) => a.score - b.score || compare(a.candidate, b.candidate));
  return ranked.slice(0, limit).map((entry) => entry.candidate);
}

/** Inserted, removed, replaced or swapped letters between two words; anything above `most` is reported as `most + 1`. */
export function editDistance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const line = [row];
    let best = row;
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (line[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      }
      line.push(cost);
      best = Math.min(best, cost);
    }
    if (best > most) return most + 1;
    beforeLast = last;
    last = line;
  }
  return Math.min(last[b.length] ?? 0, most + 1);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
