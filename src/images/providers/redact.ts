import { clip } from "../../lib/bounded-text.ts";

/** Shorter words are part of ordinary text; to hide them would hide the message. */
const SHORTEST_SECRET = 6;
const HIDDEN = "[redacted]";
/** A longer text is left out: to look through it takes too long, and a part of it may end within a secret. */
const MOST_CHARACTERS = 32 * 1024;
/** `Basic` and `Bearer` headers, user information of URLs, and values beside telling names. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b(basic|bearer)\s+[\w.~+/=-]+/gi, `$1 ${HIDDEN}`],
  [/:\/\/[^\s/@]+@/g, `://${HIDDEN}@`],
  [/((?:password|passwd|secret|token|auth|key)["']?\s*[:=]\s*["']?)[^\s"',;}]+/gi, `$1${HIDDEN}`],
];

/** Returns what a plugin wrote to its standard error, for an error: bounded, and without secrets. Pure. */
export function redact(text: string, secrets: readonly string[], bytes: number): string {
  if (text.length > MOST_CHARACTERS) return `wrote ${text.length} characters to its standard error`;
  const long = new Set(secrets.filter((secret) => secret.length >= SHORTEST_SECRET));
  const known = [...long].sort((a, b) => b.length - a.length);
  const bare = known
    .reduce((shown, secret) => shown.replaceAll(secret, HIDDEN), text)
    .replace(/[\w.-]+/g, withoutToken);
  return clip(PATTERNS.reduce((shown, [pattern, by]) => shown.replace(pattern, by), bare).trim(), bytes);
}

/** Hides a JSON web token: by one pattern for all of it a text of many beginnings would take very long. */
function withoutToken(word: string): string {
  const at = word.indexOf("eyJ");
  return at >= 0 && word.slice(at).split(".").length >= 3 ? `${word.slice(0, at)}${HIDDEN}` : word;
}

/** Returns the passwords in what a plugin wrote to its standard output, valid or not. Pure. */
export function passwordsIn(text: string): readonly string[] {
  return [...text.matchAll(/"password"\s*:\s*"((?:[^"\\]|\\.)*)"/g)].map(([, password = ""]) => unescaped(password));
}

function unescaped(text: string): string {
  try {
    const value: unknown = JSON.parse(`"${text}"`);
    return typeof value === "string" ? value : text;
  } catch {
    return text;
  }
}
