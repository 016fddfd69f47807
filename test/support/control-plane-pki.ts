import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { certificate, newKey, type Subject } from "../../src/adapters/kubeapi/certificates.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const AUTHORITY = { commonName: "kubelet-ts-test-authority" };

/** A certificate and its key, as texts. */
export interface Pair {
  readonly certificate: string;
  readonly key: string;
}

/** The authority of one test cluster; everything that it signs is valid for a day unless said. */
export class TestAuthority {
  readonly key = newKey();
  readonly certificate = certificate(this.key, { subject: AUTHORITY, ...span(DAY_MS), usages: [], isAuthority: true });

  client(subject: Subject, lifetimeMs = DAY_MS): Pair {
    return this.sign({ subject, ...span(lifetimeMs), usages: ["client"] });
  }

  server(commonName: string, names: { dnsNames: readonly string[]; addresses: readonly string[] }): Pair {
    return this.sign({ subject: { commonName }, ...names, ...span(DAY_MS), usages: ["server"] });
  }

  private sign(content: Parameters<typeof certificate>[1]): Pair {
    const key = newKey();
    return { key, certificate: certificate(key, content, { subject: AUTHORITY, keyPem: this.key }) };
  }
}

/** Negative: it ended that long ago. */
function span(lifetimeMs: number): { notBefore: number; notAfter: number } {
  const now = Date.now();
  return { notBefore: now - 60_000 + Math.min(0, lifetimeMs), notAfter: now + lifetimeMs };
}

/** The files of a control plane in one folder; the answer gives a file's path. */
export function writePki(dir: string, authority: TestAuthority): (name: string) => string {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = (name: string): string => join(dir, name);
  const write = (name: string, text: string): void => writeFileSync(path(name), text, { mode: 0o600 });
  const pair = (name: string, { certificate: text, key }: Pair): void => {
    write(`${name}.crt`, text);
    write(`${name}.key`, key);
  };
  pair("ca", authority);
  const dnsNames = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
  pair("apiserver", authority.server("kube-apiserver", { dnsNames, addresses: ["127.0.0.1", "10.96.0.1"] }));
  pair("kubelet-client", authority.client({ commonName: "kube-apiserver", organizations: ["system:masters"] }));
  write("service-accounts.key", newKey());
  return path;
}
