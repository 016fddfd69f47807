import { encodedValueOf, shownValueOf } from "../config/index.ts";
import { table } from "../lib/table.ts";
import { command } from "./command.ts";
import { differences, nameOf } from "./config-compare.ts";
import { loadFile, tellWarnings } from "./config-load.ts";
import { formatOption, formatted, helpOption, print } from "./print.ts";

/** `kubelet config diff A B`; like diff(1) it exits with 1 when there is a difference. */
export const configDiff = command({
  name: "config diff",
  usage: "A B",
  summary: "Compare the effective settings of two configuration files.",
  options: { ...formatOption, ...helpOption },
  words: { min: 2, max: 2 },
  async run({ values, words }, deps, { signal }) {
    const [first = "", second = ""] = words;
    const a = await loadFile(first, deps, { signal });
    const b = await loadFile(second, deps, { signal });
    for (const loaded of [a, b]) await tellWarnings(loaded, deps, { signal });
    const changed = differences(a.values, b.values).filter((name) => name !== "config");
    if (values.output === "text") {
      const rows = changed.map((name) => [
        nameOf(name),
        shown(shownValueOf(name, a.values)),
        shown(shownValueOf(name, b.values)),
      ]);
      const same = "No difference.\n";
      const text = rows.length === 0 ? same : table(rows, { header: ["FIELD", first, second], color: deps.out.color });
      await print(deps.out, text, { signal });
    } else {
      const list = changed.map((name) => ({
        name: nameOf(name),
        a: encodedValueOf(name, a.values),
        b: encodedValueOf(name, b.values),
      }));
      await print(deps.out, await formatted(list, values.output), { signal });
    }
    return changed.length === 0 ? 0 : 1;
  },
});

function shown(value: string): string {
  return value === "" ? "-" : value;
}
