import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { basename } from "node:path";

/** A place in a stack: `at name (file:line:column)` or `at file:line:column`. */
const PLACE = /\(?(?:file:\/\/)?([^()\s]+):(\d+):(\d+)\)?$/;
const maps = new Map<string, SourceMap | undefined>();
const names = new Map<string, string>();

/**
 * The file that called the function `above`, by its name without directory and extension; empty if unknown. In the
 * bundle the source map beside it resolves the line. Slow at first, cached per call site.
 */
export function callerFile(above: (...args: never[]) => unknown): string {
  const holder: { stack?: string } = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 1;
  Error.captureStackTrace(holder, above);
  Error.stackTraceLimit = limit;
  const line = holder.stack?.split("\n").at(-1)?.trim() ?? "";
  const known = names.get(line);
  if (known !== undefined) return known;
  const name = nameOf(line);
  names.set(line, name);
  return name;
}

function nameOf(line: string): string {
  const [, file = "", row = "0", column = "0"] = PLACE.exec(line) ?? [];
  const entry = mapOf(file)?.findEntry(Number(row) - 1, Number(column) - 1);
  const source = entry !== undefined && "originalSource" in entry ? entry.originalSource : file;
  return basename(source).replace(/\.[a-z]+$/, "");
}

function mapOf(file: string): SourceMap | undefined {
  if (!file.endsWith(".cjs")) return undefined;
  if (maps.has(file)) return maps.get(file);
  let map: SourceMap | undefined;
  try {
    map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")));
  } catch {
    // Not there: the bundle's own name has to do.
  }
  maps.set(file, map);
  return map;
}
