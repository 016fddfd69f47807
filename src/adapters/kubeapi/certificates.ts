import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from "node:crypto";
import { isIP } from "node:net";
import * as der from "./der.ts";

/** Who a certificate is about. */
export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

export interface RequestContent {
  readonly subject: Subject;
  readonly dnsNames?: readonly string[];
  readonly addresses?: readonly string[];
}

export interface CertificateContent extends RequestContent {
  readonly notBefore: number;
  readonly notAfter: number;
  readonly usages: readonly ("server" | "client")[];
  readonly isAuthority?: boolean;
}

export interface Issuer {
  readonly subject: Subject;
  readonly keyPem: string;
}

const OID = {
  commonName: "2.5.4.3",
  organization: "2.5.4.10",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  extensionRequest: "1.2.840.113549.1.9.14",
  subjectKeyId: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyId: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  clientAuth: "1.3.6.1.5.5.7.3.2",
} as const;

/** A new ECDSA P-256 key, PEM `EC PRIVATE KEY`. */
export function newKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "sec1", format: "pem" }).toString();
}

/** A PKCS #10 request, PEM, signed by the key. */
export function certificateRequest(keyPem: string, content: RequestContent): string {
  const key = createPrivateKey(keyPem);
  const names = altNames(content);
  const spec = der.sequence(der.oid(OID.extensionRequest), der.set(der.sequence(...names)));
  const attributes = names.length === 0 ? [] : [spec];
  const body = der.sequence(
    der.integer(Buffer.from([0])),
    nameOf(content.subject),
    publicKeyOf(key),
    der.explicit(0, ...attributes),
  );
  return der.pem("CERTIFICATE REQUEST", signed(body, key));
}

/** A certificate for the key, PEM: signed by itself, or by `issuer` (tests make their own authority with it). */
export function certificate(keyPem: string, content: CertificateContent, issuer?: Issuer): string {
  const key = createPrivateKey(keyPem);
  const signer = issuer === undefined ? key : createPrivateKey(issuer.keyPem);
  // 16 random bytes with the top bit clear: positive, and never 0 at the front of a short form.
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const body = der.sequence(
    der.explicit(0, der.integer(Buffer.from([2]))),
    der.integer(serial),
    der.sequence(der.oid(OID.ecdsaWithSha256)),
    nameOf(issuer?.subject ?? content.subject),
    der.sequence(der.time(content.notBefore), der.time(content.notAfter)),
    nameOf(content.subject),
    publicKeyOf(key),
    der.explicit(3, der.sequence(...extensions(content, key, signer))),
  );
  return der.pem("CERTIFICATE", signed(body, signer));
}

function signed(body: Buffer, key: KeyObject): Buffer {
  return der.sequence(body, der.sequence(der.oid(OID.ecdsaWithSha256)), der.bitString(sign("sha256", body, key)));
}

function publicKeyOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: "spki", format: "der" });
}

/** One RDN for each value, organizations first, as Go writes it. */
function nameOf({ commonName, organizations = [] }: Subject): Buffer {
  const part = (type: string, value: string): Buffer => der.sequence(der.oid(type), der.text(value));
  const parts: Buffer[] = [];
  if (organizations.length > 0) {
    parts.push(der.set(...organizations.map((organization) => part(OID.organization, organization))));
  }
  return der.sequence(...parts, der.set(part(OID.commonName, commonName)));
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  return der.sequence(der.oid(id), ...(isCritical ? [der.boolean(true)] : []), der.octetString(value));
}

function extensions(content: CertificateContent, key: KeyObject, signer: KeyObject): Buffer[] {
  const purposes = content.usages.map((usage) => der.oid(usage === "server" ? OID.serverAuth : OID.clientAuth));
  // Digital signature, or for an authority digital signature and certificate signing.
  const keyUsage = content.isAuthority ? der.bitString(Buffer.from([0x84]), 2) : der.bitString(Buffer.from([0x80]), 7);
  return [
    extension(OID.keyUsage, true, keyUsage),
    ...(purposes.length === 0 ? [] : [extension(OID.extendedKeyUsage, false, der.sequence(...purposes))]),
    extension(OID.basicConstraints, true, der.sequence(...(content.isAuthority ? [der.boolean(true)] : []))),
    extension(OID.subjectKeyId, false, der.octetString(keyId(key))),
    extension(OID.authorityKeyId, false, der.sequence(der.implicit(0, keyId(signer)))),
    ...altNames(content),
  ];
}

/** SHA-1 of the public key: a name for it, no protection. */
function keyId(key: KeyObject): Buffer {
  return createHash("sha1").update(publicKeyOf(key)).digest();
}

function altNames({ dnsNames = [], addresses = [] }: RequestContent): Buffer[] {
  const bad = addresses.find((address) => isIP(address) === 0);
  if (bad !== undefined) throw new Error(`${JSON.stringify(bad)} is not an IP address`);
  const names = [
    ...dnsNames.map((name) => der.implicit(2, Buffer.from(name, "ascii"))),
    ...addresses.map((address) => der.implicit(7, der.addressBytes(address))),
  ];
  return names.length === 0 ? [] : [extension(OID.subjectAltName, false, der.sequence(...names))];
}
