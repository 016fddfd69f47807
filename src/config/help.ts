import type { OptionTable, Topic } from "./option.ts";

const INDENT = "  ";
const HELP_INDENT = "        ";

/** The flags of a table grouped by topic, in the table's order, no line wider than `width`. */
export function optionHelp(table: OptionTable, width = 80): string[] {
  const topics = new Map<Topic, string[]>();
  for (const entry of Object.values(table)) {
    if (entry.flag === undefined) continue;
    const lines = topics.get(entry.topic) ?? [];
    topics.set(entry.topic, lines);
    const name = entry.flag.length === 1 ? `-${entry.flag}, --${entry.flag}` : dashed(entry.flag, entry.short);
    lines.push(`${INDENT}${name}${entry.kind.placeholder === "" ? "" : ` ${entry.kind.placeholder}`}`);
    const shown = entry.default === false || entry.flag === "version" ? "" : entry.kind.show(entry.default);
    lines.push(
      ...wrap(entry.help + (shown === "" ? "" : ` (default ${shown})`), width - HELP_INDENT.length).map(
        (line) => HELP_INDENT + line,
      ),
    );
  }
  return [...topics].flatMap(([topic, lines]) => ["", `${topic}:`, ...lines]);
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
