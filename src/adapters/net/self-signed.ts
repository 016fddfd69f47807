import { mkdirSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { writeAtomic } from "../../lib/atomic-file.ts";
import { CodedError } from "../../lib/errors.ts";
import { certificate, newKey } from "../kubeapi/certificates.ts";

/** A certificate chain and its key, PEM. */
export interface ServingPair {
  readonly certificate: string;
  readonly key: string;
}

/** One file of the pair is missing. */
export class ServingPairError extends CodedError<"Incomplete"> {}

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** `kubelet.crt` and `kubelet.key` in the certificate directory. */
export function selfSignedFiles(directory: string): { certificate: string; key: string } {
  return { certificate: join(directory, "kubelet.crt"), key: join(directory, "kubelet.key") };
}

/**
 * The self-signed pair of a directory, generated if both files are missing; only one of them is an error, as in
 * Kubernetes. It is valid for a year and never renewed; the key is ECDSA P-256.
 */
export async function selfSignedPair(directory: string, host: string, wallMs: number): Promise<ServingPair> {
  const files = selfSignedFiles(directory);
  const found = { certificate: readOrNothing(files.certificate), key: readOrNothing(files.key) };
  if (found.certificate !== undefined && found.key !== undefined)
    return { certificate: found.certificate, key: found.key };
  if (found.certificate !== undefined || found.key !== undefined) {
    const [missing, there] = found.key === undefined ? [files.key, files.certificate] : [files.certificate, files.key];
    throw new ServingPairError(
      "Incomplete",
      `serving certificate: ${there} exists without ${missing}; remove it or restore both`,
    );
  }
  const pair = makePair(host.toLowerCase(), wallMs);
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  // The key first: after a crash between the two the next start names the missing file.
  await writeAtomic(files.key, pair.key, { mode: 0o600 });
  await writeAtomic(files.certificate, pair.certificate, { mode: 0o644 });
  return pair;
}

function makePair(host: string, wallMs: number): ServingPair {
  const stamp = Math.floor(wallMs / 1000);
  const time = { notBefore: wallMs - HOUR_MS, notAfter: wallMs - HOUR_MS + YEAR_MS };
  const authority = { subject: { commonName: `${host}-ca@${stamp}` }, keyPem: newKey() };
  const authorityPem = certificate(authority.keyPem, {
    subject: authority.subject,
    ...time,
    usages: [],
    isAuthority: true,
  });
  const key = newKey();
  const names = isIP(host) === 0 ? { dnsNames: [host] } : { addresses: [host] };
  const leaf = certificate(
    key,
    { subject: { commonName: `${host}@${stamp}` }, ...names, ...time, usages: ["server"] },
    authority,
  );
  return { certificate: leaf + authorityPem, key };
}

function readOrNothing(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
