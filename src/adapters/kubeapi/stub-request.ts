import { createPublicKey, generateKeyPair, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import * as der from "./der.ts";

/** Types of keys that a pod may ask for, with how requests are signed by them. */
const KEY_TYPES = {
  RSA3072: { make: () => rsa(3072), algorithm: "1.2.840.113549.1.1.11", digest: "sha256", hasNull: true },
  RSA4096: { make: () => rsa(4096), algorithm: "1.2.840.113549.1.1.11", digest: "sha256", hasNull: true },
  ECDSAP256: { make: () => ecdsa("P-256"), algorithm: "1.2.840.10045.4.3.2", digest: "sha256", hasNull: false },
  ECDSAP384: { make: () => ecdsa("P-384"), algorithm: "1.2.840.10045.4.3.3", digest: "sha384", hasNull: false },
  ECDSAP521: { make: () => ecdsa("P-521"), algorithm: "1.2.840.10045.4.3.4", digest: "sha512", hasNull: false },
  ED25519: { make: () => ed25519(), algorithm: "1.3.101.112", digest: undefined, hasNull: false },
} as const;

const generate = promisify(generateKeyPair);

/** A private key and the proof that its owner has it. */
export interface StubRequest {
  /** PKCS #8, PEM. */
  readonly keyPem: string;
  /** A PKCS #10 request about nobody, DER, as base64. */
  readonly request: string;
}

/** Makes a key of a type (`RSA3072` … `ED25519`), in another thread: a large one takes seconds. Rejects for other types. */
export async function stubRequest(keyType: string): Promise<StubRequest> {
  if (!isKeyType(keyType)) throw new Error(`unknown key type ${JSON.stringify(keyType.slice(0, 64))}`);
  const { make, algorithm, digest, hasNull } = KEY_TYPES[keyType];
  const key = await make();
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
  const body = der.sequence(der.integer(Buffer.from([0])), der.sequence(), publicKey, der.explicit(0));
  const identifier = der.sequence(der.oid(algorithm), ...(hasNull ? [der.nothing] : []));
  const signature = der.bitString(sign(digest, body, key));
  return {
    keyPem: key.export({ type: "pkcs8", format: "pem" }).toString(),
    request: der.sequence(body, identifier, signature).toString("base64"),
  };
}

function isKeyType(keyType: string): keyType is keyof typeof KEY_TYPES {
  return Object.hasOwn(KEY_TYPES, keyType);
}

async function rsa(modulusLength: number): Promise<KeyObject> {
  return (await generate("rsa", { modulusLength })).privateKey;
}

async function ecdsa(namedCurve: string): Promise<KeyObject> {
  return (await generate("ec", { namedCurve })).privateKey;
}

async function ed25519(): Promise<KeyObject> {
  return (await generate("ed25519")).privateKey;
}
