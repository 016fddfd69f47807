import { loadConfiguration, problemLines, readInputs } from "../config/index.ts";
import { command } from "./command.ts";
import { configReader } from "./config-reader.ts";
import { formatOption, formatted, helpOption, print } from "./print.ts";

/** `kubelet config validate FILE…`: stricter than a start, and reports all problems. */
export const configValidate = command({
  name: "config validate",
  usage: "FILE...",
  summary: "Validate configuration files strictly: unknown fields and duplicate keys are errors.",
  options: { ...formatOption, ...helpOption },
  words: { min: 1, max: 1000 },
  async run({ values, words }, deps, { signal }) {
    const results = [];
    for (const file of words) {
      const argv = [`--config=${file}`, "--strict-config"];
      const inputs = await readInputs(argv, configReader(deps), { signal });
      const { problems, warnings } = loadConfiguration(inputs);
      const isManifest = inputs.file === undefined && problems.length === 0;
      const message = "must be a file with a KubeletConfiguration";
      results.push({ file, problems: isManifest ? [{ file, field: "", value: "", message }] : problems, warnings });
    }
    const isFine = results.every(({ problems }) => problems.length === 0);
    if (values.output !== "text") await print(deps.out, await formatted(results, values.output), { signal });
    else {
      for (const { file, problems, warnings } of results) {
        for (const line of problemLines(warnings)) await print(deps.out, `warning: ${line}\n`, { signal });
        for (const line of problemLines(problems)) await print(deps.out, `error: ${line}\n`, { signal });
        if (problems.length === 0) await print(deps.out, `${file}: ok\n`, { signal });
      }
    }
    return isFine ? 0 : 1;
  },
});
