import type { OptionTable } from "../option.ts";

/** The notice of a flag whose setting belongs into the file. */
export function inFile(field: string): string {
  return `set ${field} in the file of --config`;
}

/**
 * Fields of KubeletConfiguration: an option's name is its path unless it says another, and its flag is deprecated in
 * favour of the file, as in Kubernetes, unless it says `deprecated: undefined`.
 */
export function configFields<Table extends OptionTable>(table: Table): Table {
  const filled: Record<string, unknown> = {};
  for (const [name, entry] of Object.entries(table)) {
    const field = entry.field ?? name;
    const notice = entry.flag === undefined || "deprecated" in entry ? {} : { deprecated: inFile(field) };
    filled[name] = { ...entry, field, ...notice };
  }
  return filled as Table; // reason: the same entries with optional properties filled in
}
