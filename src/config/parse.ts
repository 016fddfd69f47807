import { messageOf } from "../lib/errors.ts";
import type { Option, OptionTable, Values } from "./option.ts";
import { didYouMean } from "./rules.ts";

/** The parsed command line. `values` are complete (defaults filled in) but valid only if there are no problems. */
export interface Parsed<Table extends OptionTable> {
  readonly values: Values<Table>;
  /** The fields that were given, not defaulted. */
  readonly given: ReadonlySet<keyof Table>;
  /** Words that are no flags. */
  readonly words: readonly string[];
  /** All that is wrong, a sentence each. */
  readonly problems: readonly string[];
}

/**
 * Reads flags as pflag does: `--x=v`, `--x v`, `-x v`, `-xv`, `_` for `-`, a flag with a bare value (every boolean)
 * takes no separate word, a list flag given again appends, `--` ends the flags. Never throws: it collects the problems.
 */
export function parseOptions<Table extends OptionTable>(argv: readonly string[], table: Table): Parsed<Table> {
  const reader = new Reader(table);
  const words: string[] = [];
  const queue = [...argv];
  for (let word = queue.shift(); word !== undefined; word = queue.shift()) {
    if (word === "--") words.push(...queue.splice(0));
    else if (word.startsWith("--")) reader.long(word.slice(2), queue);
    else if (word.startsWith("-") && word.length > 1) reader.short(word.slice(1), queue);
    else words.push(word);
  }
  return { values: reader.values() as Values<Table>, given: reader.given, words, problems: reader.problems }; // reason: the table's own kinds made the values
}

/** What a flag means that is not given: without a configuration file some defaults are the old ones. */
export function flagDefault<T>(entry: Option<T>): T {
  return entry.legacyDefault ?? entry.default;
}

class Reader {
  readonly problems: string[] = [];
  readonly given = new Set<string>();
  private readonly found = new Map<string, unknown>();
  private readonly byFlag = new Map<string, string>();
  private readonly byShort = new Map<string, string>();

  constructor(private readonly table: OptionTable) {
    for (const [name, entry] of Object.entries(table)) {
      if (entry.flag !== undefined) this.byFlag.set(entry.flag, name);
      if (entry.short !== undefined) this.byShort.set(entry.short, name);
    }
  }

  long(text: string, queue: string[]): void {
    const equals = text.indexOf("=");
    const flag = (equals < 0 ? text : text.slice(0, equals)).replaceAll("_", "-");
    const name = this.byFlag.get(flag);
    if (name === undefined) {
      this.problems.push(`unknown flag --${flag}${didYouMean(flag, this.byFlag.keys(), "--")}`);
      return;
    }
    this.take({ name, shown: `--${flag}`, value: equals < 0 ? undefined : text.slice(equals + 1) }, queue);
  }

  /** One letter or several: `-f`, `-v4`, `-v=4`, `-fp`. */
  short(letters: string, queue: string[]): void {
    for (let rest = letters; rest !== ""; ) {
      const letter = rest.charAt(0);
      const name = this.byShort.get(letter);
      if (name === undefined) {
        this.problems.push(`unknown flag -${letter}${letters.length > 1 ? ` in -${letters}` : ""}`);
        return;
      }
      rest = rest.slice(1);
      const takesRest = rest.startsWith("=") || (rest !== "" && this.table[name]?.kind.bare === undefined);
      const value = takesRest ? rest.replace(/^=/, "") : undefined;
      this.take({ name, shown: `-${letter}`, value }, queue);
      if (takesRest) return;
    }
  }

  values(): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(this.table).map(([name, entry]) => [
        name,
        this.found.has(name) ? this.found.get(name) : flagDefault(entry),
      ]),
    );
  }

  private take(flag: { name: string; shown: string; value: string | undefined }, queue: string[]): void {
    const entry = this.table[flag.name];
    if (entry === undefined) return;
    const value = flag.value ?? entry.kind.bare ?? queue.shift();
    if (value === undefined) {
      this.problems.push(`flag ${flag.shown} needs a value (${entry.kind.placeholder})`);
      return;
    }
    this.given.add(flag.name);
    const problem = this.store(flag.name, entry, value);
    if (problem !== undefined) {
      const shown = entry.secret === true ? "" : ` "${value.length > 200 ? `${value.slice(0, 200)}…` : value}"`;
      this.problems.push(`invalid value${shown} for ${flag.shown}: ${problem}`);
    }
  }

  private store(name: string, entry: Option<unknown>, text: string): string | undefined {
    try {
      const value = entry.kind.parse(text, this.found.get(name));
      this.found.set(name, value);
      return entry.validate?.(value);
    } catch (error) {
      return messageOf(error);
    }
  }
}
