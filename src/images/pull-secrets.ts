import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { pullCredentials } from "../model/docker-config.ts";
import type { Secret } from "../model/generated/types.ts";
import type { ObjectSource } from "../model/object-source.ts";
import { isStaticPod } from "../model/pod-facts.ts";
import type { CredentialSource } from "./pull-request.ts";

export interface PullSecretsDeps {
  readonly objects: Pick<ObjectSource, "get">;
  readonly log: Logger;
}

/** Credentials from the `imagePullSecrets` of a pod. Secrets that cannot be read are left out, with an event. */
export function pullSecrets({ objects, log }: PullSecretsDeps): CredentialSource {
  return async ({ pod, container, journal }, options) => {
    const names = (pod.spec.imagePullSecrets ?? []).map(({ name = "" }) => name).filter((name) => name !== "");
    if (names.length === 0 || isStaticPod(pod)) return [];
    const namespace = pod.metadata.namespace ?? "";
    const read = (name: string): Promise<Secret | undefined> =>
      objects.get({ kind: "Secret", namespace, name }, options).catch((error: unknown) => {
        options.signal.throwIfAborted();
        log.warn("Failed to read image pull secret", { namespace, name, error: messageOf(error) });
        return undefined;
      });
    const found = await Promise.all(names.map(read));
    const missing = names.filter((_, index) => found[index] === undefined);
    if (missing.length > 0) journal.event("Warning", "FailedToRetrieveImagePullSecret", missingMessage(missing));
    return pullCredentials(
      container.image ?? "",
      found.filter((secret) => secret !== undefined),
    );
  };
}

/** The message of Kubernetes. */
function missingMessage(names: readonly string[]): string {
  return `Unable to retrieve some image pull secrets (${names.join(", ")}); attempting to pull the image may not succeed.`;
}
