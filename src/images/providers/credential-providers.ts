import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import { matchingCredentials } from "../../model/docker-config.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { PullCredential } from "../../model/pull-credential.ts";
import { repositoryOf } from "../../model/registry-match.ts";
import type { CredentialProvider } from "./credential-provider.ts";

/** All credential providers of the node. */
export class CredentialProviders {
  constructor(
    private readonly deps: { readonly log: Logger },
    /** Rejects if the configuration is invalid; then the agent ends. */
    private readonly loaded: Promise<readonly CredentialProvider[]>,
  ) {
    // Whoever runs or asks gets the error.
    loaded.catch(() => undefined);
  }

  /** Rejects if the configuration is invalid. */
  async check(): Promise<void> {
    await this.loaded;
  }

  /** Returns the credentials of all providers for the image. A provider that fails is left out, with a log line. */
  async forImage(image: string, pod: Pod, options: Abortable): Promise<readonly PullCredential[]> {
    const repository = repositoryOf(image);
    const providers = await orAborted(this.loaded, options.signal);
    const found = await Promise.all(
      providers.map(async (provider) => {
        try {
          return await provider.entries(repository, pod, options);
        } catch (error) {
          options.signal.throwIfAborted();
          const { namespace, name, uid } = pod.metadata;
          this.deps.log.warn("Failed to get image credentials from credential provider", {
            provider: provider.config.name,
            image: repository,
            pod: `${namespace}/${name}`,
            podUID: uid,
            error: messageOf(error),
          });
          return [];
        }
      }),
    );
    return matchingCredentials(image, found.flat());
  }
}
