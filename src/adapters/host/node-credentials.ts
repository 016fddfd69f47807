import { resolve } from "node:path";
import { readIfExists } from "../../lib/atomic-file.ts";
import { matchingCredentials, parseDockerConfig, type RegistryEntry } from "../../model/docker-config.ts";
import type { PullCredential } from "../../model/pull-credential.ts";

/** Directories that hold the node's registry credentials. */
export interface CredentialDirectories {
  /** The agent's root directory, `/var/lib/kubelet`. */
  readonly root: string;
  readonly working: string;
  readonly home: string;
  /** `/`; another one in tests. */
  readonly top: string;
}

/**
 * Returns where Kubernetes looks for the node's registry credentials. Without HOME the home directory is not looked up:
 * the personal credentials of an administrator are not for pods.
 */
export function credentialDirectories(root: string): CredentialDirectories {
  return { root, working: process.cwd(), home: process.env["HOME"] ?? "", top: "/" };
}

/**
 * The node's own registry credentials: the first valid `config.json`, else the first valid `.dockercfg`, searched in
 * the directories of Kubernetes. The files are read at each pull, so that a change needs no restart.
 */
export class NodeCredentials {
  constructor(private readonly directories: CredentialDirectories) {}

  /** Returns the credentials that match the image. Unreadable and malformed files are skipped; never rejects. */
  async forImage(image: string): Promise<readonly PullCredential[]> {
    return matchingCredentials(image, await this.load());
  }

  private async load(): Promise<readonly RegistryEntry[]> {
    const { root, working, home, top } = this.directories;
    const modern = [root, working, resolve(home, ".docker"), resolve(top, ".docker")];
    const found = await firstValid(modern, "config.json");
    return found ?? (await firstValid([root, working, home, top], ".dockercfg")) ?? [];
  }
}

async function firstValid(
  directories: readonly string[],
  format: "config.json" | ".dockercfg",
): Promise<readonly RegistryEntry[] | undefined> {
  for (const directory of directories) {
    const text = await readIfExists(resolve(directory, format)).catch(() => undefined);
    const entries = text === undefined ? undefined : parseDockerConfig(text, format);
    if (entries !== undefined) return entries;
  }
  return undefined;
}
