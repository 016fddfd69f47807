import { dirname, join } from "node:path";
import { bool, option } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { makeDirectory, readIfExists, writeAtomic } from "../lib/atomic-file.ts";
import type { Clock } from "../lib/clock.ts";
import { parseDocuments } from "../lib/yaml.ts";
import { CliError } from "./cli-error.ts";
import { command } from "./command.ts";
import { type Kubeconfig, mergeKubeconfig } from "./merge-kubeconfig.ts";
import { helpOption, placeOptions, print } from "./print.ts";

export const kubeconfig = command({
  name: "kubeconfig",
  usage: "[--merge] [--state-dir DIR]",
  summary: "Print the kubeconfig of the local API of `kubelet up`, or merge it into ~/.kube/config.",
  options: {
    merge: option(bool, {
      flag: "merge",
      default: false,
      topic: "General",
      help: "Add it to ~/.kube/config and make it the current context.",
    }),
    stateDir: placeOptions.stateDir,
    ...helpOption,
  },
  words: { min: 0, max: 0 },
  async run(parsed, { out, clock, program }, { signal }) {
    const path = join(parsed.values.stateDir, "kubeconfig");
    const text = await readIfExists(path);
    if (text === undefined) {
      throw new CliError(`there is no ${path}: start an agent with "${program} up", and without --apiserver-port=0`);
    }
    if (!parsed.values.merge) {
      await print(out, text, { signal });
      return 0;
    }
    const target = join(process.env["HOME"] ?? "/root", ".kube", "config");
    await merge(target, text, { clock, signal });
    await print(out, `Merged into ${target}; kubectl talks to the local API now.\n`, { signal });
    return 0;
  },
});

async function merge(target: string, text: string, options: Abortable & { readonly clock: Clock }): Promise<void> {
  const existing = await readIfExists(target);
  const into = existing === undefined ? {} : await parsedConfig(existing, target, options);
  const merged = mergeKubeconfig(into, await parsedConfig(text, "the kubeconfig", options));
  const { stringify } = await import("yaml");
  await makeDirectory(dirname(target), 0o700);
  await writeAtomic(target, stringify(merged), { mode: 0o600 });
}

async function parsedConfig(
  text: string,
  name: string,
  options: Abortable & { readonly clock: Clock },
): Promise<Kubeconfig> {
  const { documents } = await parseDocuments(text, options);
  const value = documents[0]?.value ?? {};
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new CliError(`${name} is not a kubeconfig; move it away or merge by hand`);
  }
  return value as Kubeconfig; // reason: an object, whatever is in it
}
