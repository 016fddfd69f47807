import { type OptionTable, TOPICS, type Topic } from "./option.ts";
import { flagDefault } from "./parse.ts";

const INDENT = "  ";
const HELP_INDENT = "        ";

/** The flags of a table grouped by topic, in the table's order within each, no line wider than `width`. */
export function optionHelp(table: OptionTable, width = 80): string[] {
  const topics = new Map<Topic, string[]>(TOPICS.map((topic) => [topic, []]));
  for (const entry of Object.values(table)) {
    if (entry.flag === undefined || (entry.hidden === true && entry.deprecated === undefined)) continue;
    const name = entry.flag.length === 1 ? `-${entry.flag}, --${entry.flag}` : dashed(entry.flag, entry.short);
    const words = wrap(entry.help + shownDefault(entry), width - HELP_INDENT.length);
    topics
      .get(entry.topic)
      ?.push(
        `${INDENT}${name}${entry.kind.placeholder === "" ? "" : ` ${entry.kind.placeholder}`}`,
        ...words.map((line) => HELP_INDENT + line),
      );
  }
  return [...topics].flatMap(([topic, lines]) => (lines.length === 0 ? [] : ["", `${topic}:`, ...lines]));
}

function shownDefault(entry: OptionTable[string]): string {
  const value = flagDefault(entry);
  const shown = value === false || entry.flag === "version" ? "" : entry.kind.show(value);
  return shown === "" ? "" : ` (default ${shown})`;
}

function dashed(flag: string, short: string | undefined): string {
  return short === undefined ? `--${flag}` : `-${short}, --${flag}`;
}

/** Breaks text at spaces; a word longer than the width stays whole. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
