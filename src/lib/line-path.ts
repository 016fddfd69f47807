/** The path of `name` below `parent` in `ParsedDocument.lines`. */
export function linePath(parent: string, name: string | number): string {
  return `${parent}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
