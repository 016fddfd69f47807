import { X509Certificate } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomic } from "../../lib/atomic-file.ts";
import { errnoOf } from "../../lib/errors.ts";
import { type CertificateContent, certificate, newKey, type Subject } from "../kubeapi/certificates.ts";

const DAY_MS = 86_400_000;
const AUTHORITY_MS = 3650 * DAY_MS;
const LEAF_MS = 365 * DAY_MS;
/** A certificate with less time left than this is replaced. */
const RENEW_MS = 90 * DAY_MS;
/**
 * Certificates begin with the calendar of computers, and last as if they were made now at the earliest. A machine without a
 * battery starts in 1970: nothing may be replaced then, and what is made then has to be valid once the clock is right.
 */
const NOT_BEFORE = 0;
const EARLIEST_NOW = Date.UTC(2026, 10, 1);

/** A certificate and its key, PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** The keys and certificates of the local API. */
export interface LocalPki {
  /** Signs all others; clients and pods trust the API by it. */
  readonly authority: string;
  readonly serving: KeyPair;
  /** Of the kubeconfig: a member of `system:masters`. */
  readonly administrator: KeyPair;
  /** Signs tokens of service accounts. */
  readonly signingKey: string;
}

export interface LocalPkiOptions {
  /** Made if it is missing; only its owner can read what is in it. */
  readonly directory: string;
  readonly dnsNames: readonly string[];
  readonly addresses: readonly string[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

const AUTHORITY: Subject = { commonName: "kubelet-ts-local-api" };
const ADMINISTRATOR: Subject = { commonName: "kubernetes-admin", organizations: ["system:masters"] };
const SERVER: Subject = { commonName: "kube-apiserver" };

/**
 * Reads the keys and certificates of a directory; makes those that are missing, end soon or are for other names. The
 * authority and the signing key stay as long as their files do.
 */
export async function openLocalPki(options: LocalPkiOptions): Promise<LocalPki> {
  const { directory, now, dnsNames, addresses } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const authority = await ensure(directory, "ca", {
    isUsable: (text) => isValid(text, now),
    make: () => {
      const key = newKey();
      const time = { notBefore: NOT_BEFORE, notAfter: Math.max(now, EARLIEST_NOW) + AUTHORITY_MS };
      return { key, certificate: certificate(key, { subject: AUTHORITY, ...time, usages: [], isAuthority: true }) };
    },
  });
  const leaf = (name: string, content: Omit<CertificateContent, "notBefore" | "notAfter">): Promise<KeyPair> =>
    ensure(directory, name, {
      isUsable: (text) => isValid(text, now) && isFor(text, content, authority.certificate),
      make: () => {
        const key = newKey();
        const time = { notBefore: NOT_BEFORE, notAfter: Math.max(now, EARLIEST_NOW) + LEAF_MS };
        return {
          key,
          certificate: certificate(key, { ...content, ...time }, { subject: AUTHORITY, keyPem: authority.key }),
        };
      },
    });
  return {
    authority: authority.certificate,
    serving: await leaf("apiserver", { subject: SERVER, dnsNames, addresses, usages: ["server"] }),
    administrator: await leaf("admin", { subject: ADMINISTRATOR, usages: ["client"] }),
    signingKey: await signingKey(join(directory, "service-accounts.key")),
  };
}

interface PairRule {
  isUsable(certificate: string): boolean;
  make(): KeyPair;
}

/** The pair of two files, which is made if one is missing or of no use. The key is written first. */
async function ensure(directory: string, name: string, { isUsable, make }: PairRule): Promise<KeyPair> {
  const [certificateFile, keyFile] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  const found = { certificate: await readOrNothing(certificateFile), key: await readOrNothing(keyFile) };
  if (found.certificate !== undefined && found.key !== undefined && isUsable(found.certificate)) {
    return { certificate: found.certificate, key: found.key };
  }
  const made = make();
  await writeAtomic(keyFile, made.key, { mode: 0o600 });
  await writeAtomic(certificateFile, made.certificate, { mode: 0o600 });
  return made;
}

async function signingKey(path: string): Promise<string> {
  const found = await readOrNothing(path);
  if (found !== undefined) return found;
  const made = newKey();
  await writeAtomic(path, made, { mode: 0o600 });
  return made;
}

function isValid(text: string, now: number): boolean {
  try {
    const { validTo, validFrom } = new X509Certificate(text);
    return Date.parse(validFrom) <= now && Date.parse(validTo) - now > RENEW_MS;
  } catch {
    return false;
  }
}

/** True if the certificate has all names, and the authority signed it. */
function isFor(
  text: string,
  { dnsNames = [], addresses = [] }: Pick<CertificateContent, "dnsNames" | "addresses">,
  authority: string,
): boolean {
  const found = new X509Certificate(text);
  if (!found.verify(new X509Certificate(authority).publicKey)) return false;
  return (
    dnsNames.every((name) => found.checkHost(name) !== undefined) &&
    addresses.every((address) => found.checkIP(address) !== undefined)
  );
}

async function readOrNothing(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
