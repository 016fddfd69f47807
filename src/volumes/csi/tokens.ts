import type { Abortable } from "../../lib/abort.ts";
import type { CSIDriver, Pod } from "../../model/generated/types.ts";
import type { TokenSource } from "../kind.ts";

/** What a token lives for if its driver does not say, in seconds. */
const DEFAULT_EXPIRATION_SECONDS = 3600;

export interface DriverTokens {
  readonly attributes: Readonly<Record<string, string>>;
  /** Wall-clock milliseconds at which the first of them has to be replaced; undefined without tokens. */
  readonly refreshAt: number | undefined;
}

/** Returns the tokens of the pod's service account that the driver asks for, as one attribute of JSON by audience. */
export async function serviceAccountTokens(
  object: CSIDriver | undefined,
  pod: Pod,
  { tokens, signal }: Abortable & { readonly tokens?: TokenSource },
): Promise<DriverTokens> {
  const requests = object?.spec.tokenRequests ?? [];
  if (requests.length === 0) return { attributes: {}, refreshAt: undefined };
  if (tokens === undefined) throw new Error("tokens of service accounts need an API server");
  const outputs: Record<string, { token: string; expirationTimestamp: string }> = {};
  let refreshAt = Number.POSITIVE_INFINITY;
  for (const { audience, expirationSeconds = DEFAULT_EXPIRATION_SECONDS } of requests) {
    const found = await tokens.token({ pod, audience, expirationSeconds }, { signal });
    refreshAt = Math.min(refreshAt, found.refreshAt);
    outputs[audience] = {
      token: found.token,
      expirationTimestamp: `${new Date(found.expiresAt).toISOString().slice(0, 19)}Z`,
    };
  }
  return { attributes: { "csi.storage.k8s.io/serviceAccount.tokens": JSON.stringify(outputs) }, refreshAt };
}
