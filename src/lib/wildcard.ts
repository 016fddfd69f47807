/**
 * True if the whole text matches the pattern: `*` stands for any characters, `?` for exactly one. Never backtracks
 * further than to the last `*`, so that a hostile pattern costs at most the product of both lengths.
 */
export function matchesWildcard(pattern: string, text: string): boolean {
  let at = 0;
  let place = 0;
  let star = -1;
  let resume = 0;
  while (place < text.length) {
    const char = pattern[at];
    if (char === "*") {
      star = at++;
      resume = place;
    } else if (char !== undefined && (char === "?" || char === text[place])) {
      at++;
      place++;
    } else if (star !== -1) {
      at = star + 1;
      place = ++resume;
    } else return false;
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}
