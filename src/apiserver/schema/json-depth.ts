/** Go stops at 10,000; no kind nests deeper than some dozens, and what walks trees here needs room on the stack. */
export const DEEPEST = 1000;

/**
 * Fields and elements that a body may have. Each is decoded, checked and owned on its own: three megabytes of empty
 * objects would keep everybody else waiting for a minute.
 */
export const MOST_VALUES = 50_000;

/**
 * How deep a JSON text nests, and how many values it has, counted as in `countValues`. Stops where either is too much, so a
 * caller has to compare both with their limits. Looks at each character once.
 */
export function measureJson(text: string): { readonly depth: number; readonly values: number } {
  let depth = 0;
  let deepest = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"':
        at = endOfString(text, at);
        break;
      case "{":
      case "[":
        deepest = Math.max(deepest, ++depth);
        values++;
        if (depth > DEEPEST || values > MOST_VALUES) return { depth: deepest, values };
        break;
      case ",":
        values++;
        break;
      case "}":
      case "]":
        depth--;
        break;
      default:
    }
  }
  return { depth: deepest, values };
}

/** The index of the closing quote, or of the end. */
function endOfString(text: string, begin: number): number {
  for (let quote = text.indexOf('"', begin + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (text[quote - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return quote;
  }
  return text.length;
}
