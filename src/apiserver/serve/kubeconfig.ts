import type { KeyPair } from "../../adapters/localpki/local-pki.ts";

const NAME = "kubelet";

export interface KubeconfigContent {
  /** `https://127.0.0.1:6443`. */
  readonly server: string;
  /** PEM. */
  readonly authority: string;
  readonly administrator: KeyPair;
}

/** A kubeconfig for the local API, as YAML: it is plain enough to be written by hand. */
export function kubeconfigText({ server, authority, administrator }: KubeconfigContent): string {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  return [
    "apiVersion: v1",
    "kind: Config",
    "clusters:",
    `- name: ${NAME}`,
    "  cluster:",
    `    server: ${server}`,
    `    certificate-authority-data: ${base64(authority)}`,
    "users:",
    `- name: ${NAME}`,
    "  user:",
    `    client-certificate-data: ${base64(administrator.certificate)}`,
    `    client-key-data: ${base64(administrator.key)}`,
    "contexts:",
    `- name: ${NAME}`,
    "  context:",
    `    cluster: ${NAME}`,
    `    user: ${NAME}`,
    `current-context: ${NAME}`,
    "",
  ].join("\n");
}
