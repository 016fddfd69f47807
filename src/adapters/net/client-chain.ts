import { X509Certificate } from "node:crypto";

/** The client authorities that are trusted now. */
export interface ChainContext {
  readonly authorities: readonly X509Certificate[];
}

const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";
const ANY_USAGE = "2.5.29.37.0";
/** The longest chain that is verified. */
const DEEPEST = 8;

/** The certificates of a PEM bundle. Throws if one cannot be parsed. */
export function parseAuthorities(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/**
 * True if the first certificate is for client authentication and chains up to one of the authorities, with valid
 * signatures and within all validity periods; the rest of `shown` may be intermediate certificates.
 */
export function isChainTrusted(
  shown: readonly X509Certificate[],
  { authorities }: ChainContext,
  wallMs: number,
): boolean {
  const [leaf, ...steps] = shown;
  if (leaf === undefined || !isForNow(leaf, wallMs)) return false;
  let current = leaf;
  for (let depth = 0; depth < DEEPEST; depth++) {
    const last = current;
    if (authorities.some((authority) => signed(authority, last) && isInTime(authority, wallMs))) return true;
    const next = steps.find((step) => step.fingerprint256 !== last.fingerprint256 && step.ca && signed(step, last));
    if (next === undefined || !isInTime(next, wallMs)) return false;
    current = next;
  }
  return false;
}

/** True if a certificate is for client authentication and valid now, whoever signed it. */
export function isForNow(leaf: X509Certificate, wallMs: number): boolean {
  return isForClients(leaf) && isInTime(leaf, wallMs);
}

function signed(issuer: X509Certificate, subject: X509Certificate): boolean {
  if (issuer.fingerprint256 === subject.fingerprint256) return true;
  try {
    return issuer.ca && subject.checkIssued(issuer) && subject.verify(issuer.publicKey);
  } catch {
    return false; // a key of a kind that cannot verify
  }
}

function isInTime(certificate: X509Certificate, wallMs: number): boolean {
  return Date.parse(certificate.validFrom) <= wallMs && wallMs <= Date.parse(certificate.validTo);
}

/** A certificate without usages is valid for all of them. */
function isForClients(certificate: X509Certificate): boolean {
  // `keyUsage` holds the extended usages, as dotted numbers; undefined when the certificate has none.
  const usages = certificate.keyUsage as readonly string[] | undefined; // reason: @types says it is always there
  return usages === undefined || usages.length === 0 || usages.includes(CLIENT_AUTH) || usages.includes(ANY_USAGE);
}
