import { encodeConfiguration } from "../config/index.ts";
import { command } from "./command.ts";
import { defaultValues } from "./config-compare.ts";
import { documentOption, formatted, helpOption, print } from "./print.ts";

/** `kubelet config defaults`. */
export const configDefaults = command({
  name: "config defaults",
  usage: "",
  summary: "Print a KubeletConfiguration with every field at its default.",
  options: { ...documentOption, ...helpOption },
  words: { min: 0, max: 0 },
  async run({ values }, { out }, { signal }) {
    await print(out, await formatted(encodeConfiguration(defaultValues()), values.output), { signal });
    return 0;
  },
});
