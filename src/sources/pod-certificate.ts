import type { PodCertificateRequest } from "../adapters/kubeapi/index.ts";
import { clip } from "../lib/bounded-text.ts";

/** A certificate that was issued for a pod, with its key. Times are wall-clock milliseconds. */
export interface IssuedCertificate {
  readonly keyPem: string;
  readonly chainPem: string;
  readonly beginRefreshAt: number;
  readonly notAfter: number;
}

/** Why there is no certificate and never will be: the signer decided so. */
export interface Refusal {
  readonly type: "Denied" | "Failed";
  readonly reason: string;
  readonly message: string;
}

/** What a signer may say about its decision, in bytes. */
const WORDS_BYTES = 1024;
const END = "-----END CERTIFICATE-----";
const CERTIFICATE = /-----BEGIN CERTIFICATE-----([\s\S]*?)-----END CERTIFICATE-----/g;

/** What came of a request; undefined while it is pending. Pure. */
export function outcomeOf({ status }: PodCertificateRequest, keyPem: string): IssuedCertificate | Refusal | undefined {
  for (const { type, reason = "", message = "" } of status?.conditions ?? []) {
    if (type === "Denied" || type === "Failed") {
      return { type, reason: clip(reason, WORDS_BYTES), message: clip(message, WORDS_BYTES) };
    }
    if (type !== "Issued") continue;
    return {
      keyPem,
      chainPem: cleanChain(status?.certificateChain ?? ""),
      beginRefreshAt: Date.parse(status?.beginRefreshAt ?? ""),
      notAfter: Date.parse(status?.notAfter ?? ""),
    };
  }
  return undefined;
}

/** Only the certificates of a chain: what stands between them and in their headers is left out. Pure. */
export function cleanChain(pem: string): string {
  // Nothing is looked for where no certificate ends: each begin of one would be followed to the end of the text.
  const ended = pem.slice(0, pem.lastIndexOf(END) + END.length);
  return [...ended.matchAll(CERTIFICATE)]
    .map(([, body = ""]) => {
      const base64 = body
        .split("\n")
        .filter((line) => !line.includes(":"))
        .join("")
        .replace(/\s/g, "");
      const lines = base64.match(/.{1,64}/g) ?? [];
      return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
    })
    .join("");
}
