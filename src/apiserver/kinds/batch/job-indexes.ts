/** A list of indexes such as `1,3-5`: how many it names, or what is wrong with it. */
export interface CheckedIndexes {
  readonly count: number;
  readonly problem?: string;
}

/** Checks a list of indexes, each below a number. Nothing is counted out: a short text can name billions. Pure. */
export function checkIndexes(text: string, below: number): CheckedIndexes {
  if (text === "") return { count: 0 };
  let count = 0;
  let last = -1;
  for (const part of text.split(",")) {
    const limits = part.split("-");
    if (limits.length > 2) {
      const message = `the fragment ${JSON.stringify(part)} violates the requirement that an index interval can have at most two parts separated by '-'`;
      return { count: 0, problem: message };
    }
    const numbers: number[] = [];
    for (const limit of limits) {
      const shown = JSON.stringify(limit);
      if (!/^\+?\d+$/.test(limit) || Number(limit) > Number.MAX_SAFE_INTEGER) {
        return { count: 0, problem: `cannot convert string to integer for index: ${shown}` };
      }
      if (Number(limit) >= below) return { count: 0, problem: `too large index: ${shown}` };
      const previous = numbers[0];
      if (previous !== undefined && previous >= Number(limit)) return { count: 0, problem: disorder(previous, limit) };
      numbers.push(Number(limit));
    }
    const [first = 0, end = first] = numbers;
    if (count > 0 && last >= first) return { count: 0, problem: disorder(last, String(first)) };
    count += end - first + 1;
    last = end;
  }
  return { count };
}

function disorder(previous: number, current: string): string {
  return `non-increasing order, previous: ${previous}, current: ${Number(current)}`;
}
