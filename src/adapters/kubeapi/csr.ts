import { createHash, createPublicKey } from "node:crypto";
import { type Abortable, AbortScope, TimeLimitError } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { CodedError } from "../../lib/errors.ts";
import type { CertificateSigningRequest, CertificateSigningRequestSpec } from "../../model/generated/types.ts";
import { certificateRequest, type RequestContent } from "./certificates.ts";
import { ApiError, type KubeApi } from "./port.ts";
import { Reflector } from "./reflector.ts";
import { SIGNING_REQUESTS } from "./resources.ts";

/** What is asked of a signer. */
export interface CertificateWish extends RequestContent {
  readonly signer: "kubernetes.io/kube-apiserver-client-kubelet" | "kubernetes.io/kubelet-serving";
}

/** No certificate will come: it was denied, it failed, or nobody signed it in time. */
export class SigningError extends CodedError<"Denied" | "Failed" | "Timeout"> {}

export interface SigningOptions extends Abortable {
  /** PEM. The one who asks keeps it. */
  readonly key: string;
  /** Milliseconds until somebody must have signed. */
  readonly limitMs: number;
  /** `stable`: the same key and wish give the same name, so that a request from before a crash is found again. */
  readonly name: "stable" | "generated";
}

export interface SigningDeps {
  readonly api: Pick<KubeApi, "create" | "get" | "list" | "watch">;
  readonly clock: Clock;
}

/** Asks for a certificate and waits until it is signed. Resolves to the PEM chain. Rejects with `SigningError`, `ApiError`. */
export async function requestCertificate(
  deps: SigningDeps,
  wish: CertificateWish,
  options: SigningOptions,
): Promise<string> {
  const spec: CertificateSigningRequestSpec = {
    request: Buffer.from(certificateRequest(options.key, wish)).toString("base64"),
    signerName: wish.signer,
    usages: usagesOf(wish),
  };
  const metadata = options.name === "stable" ? { name: stableName(wish, options.key) } : { generateName: "csr-" };
  const request = await createOrAdopt(deps.api, { metadata, spec }, options);
  return waitForSignature(deps, request, options);
}

/** Only ECDSA keys are made here; RSA would need key encipherment, too. */
function usagesOf({ signer }: CertificateWish): string[] {
  return ["digital signature", signer === "kubernetes.io/kubelet-serving" ? "server auth" : "client auth"];
}

/** `node-csr-` and a digest of the public key and of what is asked for. */
export function stableName(wish: CertificateWish, key: string): string {
  const hash = createHash("sha512-256");
  hash.update(createPublicKey(key).export({ type: "spki", format: "der" }));
  const { commonName, organizations = [] } = wish.subject;
  // Each part with its length, so that no two lists of parts are the same text.
  for (const part of [commonName, ...organizations, ...usagesOf(wish)]) hash.update(`${part.length}:${part}`);
  return `node-csr-${hash.digest("base64url")}`;
}

async function createOrAdopt(
  api: SigningDeps["api"],
  object: CertificateSigningRequest,
  options: Abortable,
): Promise<CertificateSigningRequest> {
  try {
    return await api.create(SIGNING_REQUESTS, { object }, options);
  } catch (error) {
    const { name } = object.metadata;
    if (!(error instanceof ApiError) || error.code !== "AlreadyExists" || name === undefined) throw error;
    // The name says that key and wish are the same; the signature in it differs from one time to the next.
    const found = await api.get(SIGNING_REQUESTS, { name }, options);
    if (found.spec.signerName === object.spec.signerName) return found;
    throw new SigningError("Failed", `CertificateSigningRequest ${name} exists for another signer`, { cause: error });
  }
}

async function waitForSignature(
  deps: SigningDeps,
  request: CertificateSigningRequest,
  { signal, limitMs }: SigningOptions,
): Promise<string> {
  const name = request.metadata.name ?? "";
  const scope = new AbortScope([signal], { clock: deps.clock, ms: limitMs });
  let outcome: string | SigningError | undefined = outcomeOf(request);
  const look = (object: CertificateSigningRequest): void => {
    if (object.metadata.uid !== request.metadata.uid) return;
    outcome ??= outcomeOf(object);
    if (outcome !== undefined) scope.abort();
  };
  try {
    const reflector = new Reflector<CertificateSigningRequest>(deps, {
      resource: SIGNING_REQUESTS,
      select: { fieldSelector: `metadata.name=${name}` },
      firstList: "latest",
      onChange: ({ kind, object }) => {
        if (kind !== "deleted") return look(object);
        outcome ??= new SigningError("Failed", `CertificateSigningRequest ${name} was deleted before it was signed`);
        scope.abort();
      },
    });
    if (outcome === undefined) await reflector.run(scope);
  } finally {
    scope.dispose();
  }
  if (typeof outcome === "string") return outcome;
  if (outcome !== undefined) throw outcome;
  if (scope.signal.reason instanceof TimeLimitError)
    throw new SigningError("Timeout", `CertificateSigningRequest ${name} was not signed within ${limitMs / 1000} s`);
  throw signal.reason;
}

/** The certificate, why there will be none, or undefined while it is open. */
function outcomeOf({ metadata, status }: CertificateSigningRequest): string | SigningError | undefined {
  for (const { type, reason, message } of status?.conditions ?? []) {
    if (type !== "Denied" && type !== "Failed") continue;
    const why = [reason, message].filter((part) => part).join(": ");
    return new SigningError(
      type,
      `CertificateSigningRequest ${metadata.name} was ${type === "Denied" ? "denied" : "not signed"}: ${why}`,
    );
  }
  if (!status?.certificate) return undefined;
  return Buffer.from(status.certificate, "base64").toString("utf8");
}
