import { createHash } from "node:crypto";

/** Credentials for a registry. */
export interface RegistryAuth {
  readonly username?: string;
  readonly password?: string;
  readonly identityToken?: string;
  readonly registryToken?: string;
}

/** The object of the API that a credential belongs to. */
export interface CredentialOwner {
  readonly kind: "Secret" | "ServiceAccount";
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** A credential for an image. */
export interface PullCredential {
  readonly auth: RegistryAuth;
  /** The pod's secret or service account that it comes from; undefined if every pod of the node may use it. */
  readonly owner?: CredentialOwner;
  /** Identifies the credential without revealing it, as in Kubernetes. */
  readonly hash: string;
}

/** Go escapes these in JSON, and the hash is that of Go's text. */
const ESCAPED = /[<>&\u2028\u2029]/g;

/** Returns the hash by which Kubernetes recognises a credential in its records of pulled images. Pure. */
export function credentialHash(auth: RegistryAuth, email = ""): string {
  const { username, password, identityToken: identitytoken, registryToken: registrytoken } = auth;
  const all = { username, password, email, identitytoken, registrytoken };
  const given = Object.entries(all).filter(([, value]) => value !== undefined && value !== "");
  const text = JSON.stringify(Object.fromEntries(given)).replace(
    ESCAPED,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return createHash("sha256").update(text).digest("hex");
}
