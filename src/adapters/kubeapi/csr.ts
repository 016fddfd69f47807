import { createHash, createPublicKey } from "node:crypto";
import { type Abortable, AbortScope, TimeLimitError } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { CodedError } from "../../lib/errors.ts";
import type { CertificateSigningRequest, CertificateSigningRequestSpec } from "../../model/generated/types.ts";
import { certificateRequest, type RequestContent } from "./certificates.ts";
import { ApiError, type KubeApi } from "./port.ts";
import { Reflector } from "./reflector.ts";
import { SIGNING_REQUESTS } from "./resources.ts";

/** The certificate that is requested from a signer. */
export interface CertificateSpec extends RequestContent {
  readonly signer: "kubernetes.io/kube-apiserver-client-kubelet" | "kubernetes.io/kubelet-serving";
}

/** The request was denied, failed, or was not signed in time. */
export class SigningError extends CodedError<"Denied" | "Failed" | "Timeout"> {}

export interface SigningOptions extends Abortable {
  /** PEM; persisted by the caller. */
  readonly key: string;
  /** Timeout for the signature in milliseconds. */
  readonly limitMs: number;
  /** `stable`: the same key and spec give the same name, so that a request from before a crash is found again. */
  readonly name: "stable" | "generated";
}

export interface SigningDeps {
  readonly api: Pick<KubeApi, "create" | "get" | "list" | "watch">;
  readonly clock: Clock;
}

/** Requests a certificate and waits until it is signed. Resolves to the PEM chain. Rejects with `SigningError`, `ApiError`. */
export async function requestCertificate(
  deps: SigningDeps,
  certificate: CertificateSpec,
  options: SigningOptions,
): Promise<string> {
  const spec: CertificateSigningRequestSpec = {
    request: Buffer.from(certificateRequest(options.key, certificate)).toString("base64"),
    signerName: certificate.signer,
    usages: usagesOf(certificate),
  };
  const metadata =
    options.name === "stable" ? { name: stableName(certificate, options.key) } : { generateName: "csr-" };
  const request = await createOrAdopt(deps.api, { metadata, spec }, options);
  return waitForSignature(deps, request, options);
}

/** Only ECDSA keys are made here; RSA would need key encipherment, too. */
function usagesOf({ signer }: CertificateSpec): string[] {
  return ["digital signature", signer === "kubernetes.io/kubelet-serving" ? "server auth" : "client auth"];
}

/** `node-csr-` and a digest of the public key and the spec. */
export function stableName(spec: CertificateSpec, key: string): string {
  const hash = createHash("sha512-256");
  hash.update(createPublicKey(key).export({ type: "spki", format: "der" }));
  const { commonName, organizations = [] } = spec.subject;
  // Each part with its length, so that no two lists of parts are the same text.
  for (const part of [commonName, ...organizations, ...usagesOf(spec)]) hash.update(`${part.length}:${part}`);
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
    // Key and spec are the same by the name; only the signature differs.
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

/** Returns the certificate or the error; undefined while the request is pending. */
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
