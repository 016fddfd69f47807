/** Returns the beginning of a text in at most so many bytes of UTF-8, never half a character. Keeps nothing of the rest alive. */
export function firstBytes(text: string, bytes: number): string {
  // No character takes more than three bytes for each of its units.
  if (text.length * 3 <= bytes) return text;
  // A unit takes at least one byte, so that a huge text is never encoded as a whole.
  const encoded = Buffer.from(text.slice(0, bytes + 1), "utf8");
  if (encoded.length <= bytes) return text;
  let end = bytes;
  while (end > 0 && isContinuation(encoded[end])) end--;
  return encoded.toString("utf8", 0, end);
}

/** Returns the end of a text in at most so many bytes of UTF-8, never half a character. */
export function lastBytes(text: string, bytes: number): string {
  const encoded = Buffer.from(text.slice(-bytes), "utf8");
  let start = Math.max(0, encoded.length - bytes);
  while (start < encoded.length && isContinuation(encoded[start])) start++;
  return encoded.toString("utf8", start);
}

/**
 * Returns a text as it is, or its beginning with a note of what was left out, in at most so many bytes of UTF-8. For
 * every text that a pod, a container, a registry or a runtime chooses and that is kept: in memory, a status or an event.
 */
export function clip(text: string, bytes: number): string {
  const whole = firstBytes(text, bytes);
  if (whole.length === text.length) return whole;
  const note = (kept: number): string => `… (${text.length - kept} characters omitted)`;
  const kept = firstBytes(text, Math.max(0, bytes - Buffer.byteLength(note(0))));
  return firstBytes(`${kept}${note(kept.length)}`, bytes);
}

/** `10xxxxxx` continues the character before it. */
function isContinuation(byte: number | undefined): boolean {
  return ((byte ?? 0) & 0xc0) === 0x80;
}
