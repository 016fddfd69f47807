import { CodedError } from "../../lib/errors.ts";

/** A PEM text, or the file that holds it (read again when it changes). */
export type Material =
  | { readonly kind: "data"; readonly pem: string }
  | { readonly kind: "file"; readonly path: string };

/** A program that prints credentials (an ExecCredential). */
export interface ExecPlugin {
  readonly apiVersion: "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1";
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
}

export interface Impersonation {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Who we are for the server. All parts may be missing: then we are anonymous. */
export interface Identity {
  readonly certificate?: Material;
  readonly key?: Material;
  readonly token?: string;
  /** Wins over `token` once it could be read. */
  readonly tokenFile?: string;
  readonly exec?: ExecPlugin;
  readonly impersonate?: Impersonation;
}

/** Everything needed to reach an API server and to be known by it. */
export interface ClientConfig {
  /** Base URLs of servers that are the same cluster; the next one is tried when one is away. At least one. */
  readonly servers: readonly string[];
  /** The name that the certificate must have, when it is not the one in the URL. */
  readonly serverName?: string;
  /** Missing: the machine's own authorities. */
  readonly authority?: Material;
  readonly isInsecure: boolean;
  readonly proxyUrl?: string;
  readonly namespace: string;
  readonly identity: Identity;
}

/** A kubeconfig that cannot be used; the message names the file and the field. */
export class KubeconfigError extends CodedError<"Unreadable" | "Invalid"> {}
