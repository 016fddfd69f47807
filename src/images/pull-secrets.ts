import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { isMalformed, pullCredentials } from "../model/docker-config.ts";
import type { Secret } from "../model/generated/types.ts";
import type { ObjectSource } from "../model/object-source.ts";
import { isStaticPod } from "../model/pod-facts.ts";
import type { CredentialSource } from "./pull-request.ts";

export interface PullSecretsDeps {
  readonly objects: Pick<ObjectSource, "get">;
  readonly log: Logger;
}

/**
 * Credentials from the `imagePullSecrets` of a pod. Secrets that cannot be read, or are malformed, are left out, with an
 * event: the others may suffice.
 */
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
    const malformed = names.filter((_, index) => found[index] !== undefined && isMalformed(found[index]));
    if (malformed.length > 0) log.warn("Failed to parse image pull secrets", { namespace, names: malformed });
    const event = (verb: string, which: readonly string[]): void => {
      if (which.length === 0) return;
      journal.event("Warning", "FailedToRetrieveImagePullSecret", unusableMessage(verb, which));
    };
    event("retrieve", missing);
    event("parse", malformed);
    return pullCredentials(
      container.image ?? "",
      found.filter((secret) => secret !== undefined),
    );
  };
}

/** The message of Kubernetes; its kubelet fails the pull because of a malformed secret. */
function unusableMessage(verb: string, names: readonly string[]): string {
  return `Unable to ${verb} some image pull secrets (${names.join(", ")}); attempting to pull the image may not succeed.`;
}
