/** Chains that the portmap plug-in shares between all networks of a machine, with the built-in chains that jump there. */
const PORTMAP_CHAINS = ["CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-SETMARK", "CNI-HOSTPORT-MASQ"];

/**
 * What to feed to `iptables-restore --noflush` so that the rules of the network `name` are gone from a saved rule set:
 * our own (their comment is the name), and the port mappings of its pods with their chains. Empty when there is nothing.
 * Pure.
 */
export function filterRemoval(saved: string, name: string): string {
  return scriptOf(saved, ({ rules }) => {
    const ours = rules.filter((rule) => isOurs(rule, name));
    const doomed = [...new Set(ours.map(jumpTarget).filter((target) => /^CNI-(DN|SN)-/.test(target)))];
    const deletions = ours.filter((rule) => !doomed.includes(chainOf(rule))).map(deletionOf);
    // All are emptied before one is removed: they jump to each other.
    return [...deletions, ...doomed.map((chain) => `-F ${chain}`), ...doomed.map((chain) => `-X ${chain}`)];
  });
}

/**
 * The same for the portmap plug-in's empty scaffolding, which it makes anew when needed; empty as long as a mapping of
 * anybody is left. No chain is flushed: one that another network uses by now cannot be removed, and then all stays. Pure.
 */
export function portmapRemoval(saved: string): string {
  return scriptOf(saved, ({ rules, chains }) => {
    if (!chains.has("CNI-HOSTPORT-DNAT") || rules.some((rule) => chainOf(rule) === "CNI-HOSTPORT-DNAT")) return [];
    const portmap = PORTMAP_CHAINS.filter((chain) => chains.has(chain));
    const doomed = rules.filter((rule) => portmap.includes(chainOf(rule)) || portmap.includes(jumpTarget(rule)));
    return [...doomed.map(deletionOf), ...portmap.map((chain) => `-X ${chain}`)];
  });
}

function scriptOf(saved: string, removalOf: (table: SavedTable) => readonly string[]): string {
  const script: string[] = [];
  for (const table of splitTables(saved)) {
    const commands = removalOf(table);
    if (commands.length > 0) script.push(`*${table.name}`, ...commands, "COMMIT");
  }
  return script.length === 0 ? "" : `${script.join("\n")}\n`;
}

interface SavedTable {
  readonly name: string;
  readonly chains: ReadonlySet<string>;
  readonly rules: readonly string[];
}

function splitTables(saved: string): SavedTable[] {
  const tables: { name: string; chains: Set<string>; rules: string[] }[] = [];
  for (const line of saved.split("\n")) {
    if (line.startsWith("*")) tables.push({ name: line.slice(1).trim(), chains: new Set(), rules: [] });
    else if (line.startsWith(":")) tables.at(-1)?.chains.add(line.slice(1).split(" ", 1)[0] ?? "");
    else if (line.startsWith("-A ")) tables.at(-1)?.rules.push(line);
  }
  return tables;
}

/** The command that deletes a saved rule. */
function deletionOf(rule: string): string {
  return `-D ${rule.slice("-A ".length)}`;
}

/** Our rules carry the name as comment; portmap's have it in quotes inside a longer one. */
function isOurs(rule: string, name: string): boolean {
  const comment = /--comment ("(?:[^"\\]|\\.)*"|\S+)/.exec(rule)?.[1] ?? "";
  return comment === name || comment === `"${name}"` || comment.includes(`name: \\"${name}\\"`);
}

function chainOf(rule: string): string {
  return rule.split(" ", 2)[1] ?? "";
}

function jumpTarget(rule: string): string {
  return /\s-[jg] (\S+)/.exec(rule)?.[1] ?? "";
}
