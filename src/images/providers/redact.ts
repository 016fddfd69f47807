import { clip } from "../../lib/bounded-text.ts";

/** Shorter words are part of ordinary text; to hide them would hide the message. */
const SHORTEST_SECRET = 6;
const HIDDEN = "[redacted]";
/** JSON web tokens, `Basic` and `Bearer` headers, user information of URLs, and values beside telling names. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/eyJ[\w-]+\.[\w-]+\.[\w-]*/g, HIDDEN],
  [/\b(basic|bearer)\s+[\w.~+/=-]+/gi, `$1 ${HIDDEN}`],
  [/:\/\/[^\s/@]+@/g, `://${HIDDEN}@`],
  [/((?:password|passwd|secret|token|auth|key)["']?\s*[:=]\s*["']?)[^\s"',;}]+/gi, `$1${HIDDEN}`],
];

/** Returns the end of what a plugin wrote to its standard error, for an error: bounded, and without secrets. Pure. */
export function redact(text: string, secrets: readonly string[], bytes: number): string {
  const known = [...secrets].filter((secret) => secret.length >= SHORTEST_SECRET).sort((a, b) => b.length - a.length);
  const bare = known.reduce((shown, secret) => shown.replaceAll(secret, HIDDEN), text);
  return clip(PATTERNS.reduce((shown, [pattern, by]) => shown.replace(pattern, by), bare).trim(), bytes);
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
