import { command } from "./command.ts";
import { print } from "./print.ts";
import { downOptions, planDown } from "./up-options.ts";

export const down = command({
  name: "down",
  usage: "[--state-dir DIR]",
  summary: "Stop the pods and the containerd of `kubelet up`, and remove everything that it created.",
  options: downOptions,
  words: { min: 0, max: 0 },
  async run(parsed, { out, launcher }, { signal }) {
    const options = planDown(parsed);
    await launcher.down(options, { progress: (text) => out.write(`${text}\n`) }, { signal });
    await print(out, `Nothing is left of ${options.stateDir}.\n`, { signal });
    return 0;
  },
});
