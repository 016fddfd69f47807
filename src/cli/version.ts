import { gitVersion, versionInfo } from "../lib/version.ts";
import { command } from "./command.ts";
import { formatOption, formatted, helpOption, print } from "./print.ts";

export const version = command({
  name: "version",
  usage: "",
  summary: "Print the version.",
  options: { ...formatOption, ...helpOption },
  words: { min: 0, max: 0 },
  async run({ values }, { out }, { signal }) {
    const text = `Kubernetes ${gitVersion}\n`;
    await print(out, values.output === "text" ? text : await formatted(versionInfo(), values.output), { signal });
    return 0;
  },
});
