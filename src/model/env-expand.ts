import { ConfigError } from "./config-error.ts";

/**
 * Replaces `$(NAME)` by the value that `lookup` returns. `$$` is one dollar sign, so `$$(NAME)` stays literal; a name
 * that nobody knows and an unclosed bracket stay as they are written. One pass: what is put in is not expanded again.
 * Throws a `ConfigError` before the result is longer than `mostBytes`.
 */
export function expandEnv(text: string, lookup: (name: string) => string | undefined, mostBytes: number): string {
  let result = "";
  let bytes = 0;
  const add = (part: string): void => {
    bytes += part === "" || part === "$" || part === "$(" ? part.length : Buffer.byteLength(part);
    if (bytes > mostBytes) throw new ConfigError(`expanded variables take more than ${mostBytes} bytes`);
    result += part;
  };
  let position = 0;
  // Once no bracket closes any more, none is searched for again: a text of "$(" would take quadratic time.
  let hasClosing = true;
  while (position < text.length) {
    const dollar = text.indexOf("$", position);
    if (dollar === -1 || dollar === text.length - 1) break;
    add(text.slice(position, dollar));
    const next = text[dollar + 1];
    if (next === "$") {
      add("$");
      position = dollar + 2;
      continue;
    }
    const end = next === "(" && hasClosing ? text.indexOf(")", dollar + 2) : -1;
    if (end === -1) {
      if (next === "(") hasClosing = false;
      add(`$${next}`);
      position = dollar + 2;
      continue;
    }
    const name = text.slice(dollar + 2, end);
    add(lookup(name) ?? `$(${name})`);
    position = end + 1;
  }
  add(text.slice(position));
  return result;
}

/** Expands each word; all of them together may take `mostBytes`. */
export function expandWords(
  words: readonly string[],
  lookup: (name: string) => string | undefined,
  mostBytes: number,
): string[] {
  let left = mostBytes;
  return words.map((word) => {
    const expanded = expandEnv(word, lookup, left);
    left -= Buffer.byteLength(expanded);
    return expanded;
  });
}
