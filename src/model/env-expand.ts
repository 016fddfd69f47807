/**
 * Replaces `$(NAME)` by the value that `lookup` returns. `$$` is one dollar sign, so `$$(NAME)` stays literal; a name that nobody
 * knows and an unclosed bracket stay as they are written. One pass: what is put in is not expanded again.
 */
export function expandEnv(text: string, lookup: (name: string) => string | undefined): string {
  let result = "";
  let position = 0;
  // Once no bracket closes any more, none is searched for again: a text of "$(" would take quadratic time.
  let hasClosing = true;
  while (position < text.length) {
    const dollar = text.indexOf("$", position);
    if (dollar === -1 || dollar === text.length - 1) break;
    result += text.slice(position, dollar);
    const next = text[dollar + 1];
    if (next === "$") {
      result += "$";
      position = dollar + 2;
      continue;
    }
    const end = next === "(" && hasClosing ? text.indexOf(")", dollar + 2) : -1;
    if (end === -1) {
      if (next === "(") hasClosing = false;
      result += `$${next}`;
      position = dollar + 2;
      continue;
    }
    const name = text.slice(dollar + 2, end);
    result += lookup(name) ?? `$(${name})`;
    position = end + 1;
  }
  return result + text.slice(position);
}
