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

/** The identity of the client. Without any part it is anonymous. */
export interface Identity {
  readonly certificate?: Material;
  readonly key?: Material;
  readonly token?: string;
  /** Takes precedence over `token` once it was read. */
  readonly tokenFile?: string;
  readonly exec?: ExecPlugin;
  readonly impersonate?: Impersonation;
}

/** How to connect to an API server and to authenticate. */
export interface ClientConfig {
  /** Base URLs of the servers of one cluster, for failover. At least one. */
  readonly servers: readonly string[];
  /** Name in the server's certificate; defaults to the host of the URL. */
  readonly serverName?: string;
  /** Defaults to the system's authorities. */
  readonly authority?: Material;
  readonly isInsecure: boolean;
  readonly proxyUrl?: string;
  readonly namespace: string;
  readonly identity: Identity;
}

/** A kubeconfig that cannot be used; the message names the file and the field. */
export class KubeconfigError extends CodedError<"Unreadable" | "Invalid"> {}
