import type { Container } from "./generated/types.ts";

/** A file that variables come from may be this long (64 KiB, as in Kubernetes). */
export const MOST_ENV_FILE_BYTES = 64 * 1024;

/** The files that a container's variables come from, by `envFileKey`; one that does not exist is missing. */
export type EnvFiles = ReadonlyMap<string, string>;

/** A file in a volume of the pod. */
export interface EnvFileRef {
  readonly volumeName: string;
  readonly path: string;
}

/** Each file that a container's variables come from, once. */
export function envFileReferences(container: Container): readonly EnvFileRef[] {
  const found = new Map<string, EnvFileRef>();
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fileKeyRef !== undefined) found.set(envFileKey(valueFrom.fileKeyRef), valueFrom.fileKeyRef);
  }
  return [...found.values()];
}

export function envFileKey({ volumeName, path }: EnvFileRef): string {
  return `${volumeName}/${path}`;
}

const BLANKS = /^[ \t\r]*$/;

/**
 * The value of the first line that sets `key`: `NAME='VALUE'`, where the value is taken as it stands and may go over
 * several lines. Undefined when no line does. Throws an `Error` that names the line number, never its content.
 */
export function envFileValue(text: string, key: string): string | undefined {
  let rest = text;
  for (let line = 1; rest !== ""; ) {
    const end = rest.indexOf("\n");
    const whole = end < 0 ? rest : rest.slice(0, end);
    const words = whole.trimStart();
    if (BLANKS.test(words) || words.startsWith("#")) {
      rest = end < 0 ? "" : rest.slice(end + 1);
      line++;
      continue;
    }
    const { name, value, length } = assignment(rest, line);
    if (name === key) return value;
    line += rest.slice(0, length).split("\n").length - 1;
    rest = rest.slice(length);
  }
  return undefined;
}

/** One assignment at the beginning of the text, and how far it goes, its line's end included. */
function assignment(text: string, line: number): { name: string; value: string; length: number } {
  const head = /^[ \t]*([^\s=]+)=/.exec(text);
  if (head === null) throw unreadable(line, "is not NAME='VALUE'");
  const [before, name = ""] = head;
  const lineEnd = (from: number): number => (text.indexOf("\n", from) < 0 ? text.length : text.indexOf("\n", from));
  const first = text[before.length];
  // A blank after the sign, or nothing: no value.
  if (first === undefined || /\s/.test(first)) return { name, value: "", length: lineEnd(before.length) + 1 };
  if (first !== "'") throw unreadable(line, "has a value without single quotes");
  const close = text.indexOf("'", before.length + 1);
  if (close < 0) throw unreadable(line, "has a quote that is not closed");
  const end = lineEnd(close);
  const tail = text.slice(close + 1, end).trimStart();
  if (!BLANKS.test(tail) && !tail.startsWith("#")) throw unreadable(line, "has something after the value");
  return { name, value: text.slice(before.length + 1, close), length: end + 1 };
}

function unreadable(line: number, why: string): Error {
  return new Error(`couldn't parse env file: line ${line} ${why}`);
}
