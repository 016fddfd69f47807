import { createHash } from "node:crypto";
import { extname, join } from "node:path";
import { ConfigurationError } from "../../config/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { formatProblem } from "../../model/problem.ts";
import { decodeProviderConfig, duplicateNames, type ProviderConfig } from "./provider-config.ts";

/** What loading reads; `manifestFiles` of the host and the parser of configurations in the agent. */
export interface ProviderFiles {
  stat(
    path: string,
    options: Abortable,
  ): Promise<{ readonly kind: "file" | "directory" | "other"; readonly isExecutable: boolean } | undefined>;
  list(path: string, options: Abortable): Promise<readonly string[]>;
  read(path: string, options: Abortable & { maxBytes: number }): Promise<string>;
  /** Returns the first document of a YAML or JSON text. */
  parse(text: string, options: Abortable): Promise<unknown>;
}

export interface ProviderPaths {
  /** A file, or a directory whose `.json`, `.yaml` and `.yml` files are merged in the order of their names. */
  readonly config: string;
  readonly binDir: string;
  /** False if the feature gate for service account tokens is off. */
  readonly allowsTokens: boolean;
}

/** The credential providers of a node. */
export interface LoadedProviders {
  readonly providers: readonly ProviderConfig[];
  /** Hash of the configuration files, as in the metric of Kubernetes. */
  readonly hash: string;
}

const MOST_BYTES = 10 * 1024 * 1024;
const EXTENSIONS = [".json", ".yaml", ".yml"];

/** Loads the credential providers. Rejects with all problems of the files, and if an executable is missing. */
export async function loadProviders(
  files: ProviderFiles,
  { config, binDir, allowsTokens }: ProviderPaths,
  options: Abortable,
): Promise<LoadedProviders> {
  if (config === "") throw invalid("--image-credential-provider-config", "is required beside the bin directory");
  if ((await files.stat(binDir, options))?.kind !== "directory") {
    throw invalid("--image-credential-provider-bin-dir", `${JSON.stringify(binDir)} is not a directory`);
  }
  const hash = createHash("sha256");
  const providers: ProviderConfig[] = [];
  for (const path of await configFiles(files, config, options)) {
    const text = await readText(files, path, options);
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(Buffer.byteLength(text)));
    hash.update(length).update(text);
    const value = await files.parse(text, options).catch((error: unknown) => {
      options.signal.throwIfAborted();
      throw invalid(path, messageOf(error));
    });
    const found = decodeProviderConfig(value, { allowsTokens });
    if (found.problems.length > 0) throw invalid(path, found.problems.map(formatProblem).join("; "));
    providers.push(...found.providers);
  }
  if (providers.length === 0) throw invalid(config, "providers: must not be empty; configure at least one provider");
  const doubled = duplicateNames(providers);
  if (doubled.length > 0) throw invalid(config, doubled.map(formatProblem).join("; "));
  for (const { name } of providers) {
    const path = join(binDir, name);
    const found = await files.stat(path, options);
    const provider = `provider ${JSON.stringify(name)}`;
    if (found?.kind !== "file") {
      throw invalid(config, `${provider}: executable ${path} does not exist; install it there`);
    }
    if (!found.isExecutable) throw invalid(config, `${provider}: ${path} is not executable; set its mode to 0755`);
  }
  return { providers, hash: `sha256:${hash.digest("hex")}` };
}

async function configFiles(files: ProviderFiles, path: string, options: Abortable): Promise<readonly string[]> {
  const kind = (await files.stat(path, options))?.kind;
  if (kind === undefined) throw invalid("--image-credential-provider-config", `${JSON.stringify(path)} does not exist`);
  if (kind !== "directory") return [path];
  const found: string[] = [];
  for (const name of [...(await files.list(path, options))].sort(byBytes)) {
    if (!EXTENSIONS.includes(extname(name))) continue;
    const entry = join(path, name);
    if ((await files.stat(entry, options))?.kind === "file") found.push(entry);
  }
  if (found.length === 0) throw invalid(path, `has no file that ends in ${EXTENSIONS.join(", ")}`);
  return found;
}

async function readText(files: ProviderFiles, path: string, options: Abortable): Promise<string> {
  try {
    return await files.read(path, { ...options, maxBytes: MOST_BYTES });
  } catch (error) {
    options.signal.throwIfAborted();
    throw invalid(path, messageOf(error));
  }
}

function invalid(what: string, why: string): ConfigurationError {
  return new ConfigurationError("Invalid", `load image credential providers: ${what}: ${why}`);
}

/** The order of Go. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
