import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import type { ClientConfig, Impersonation } from "./client-config.ts";
import { type ExecCredential, runExecPlugin } from "./exec-plugin.ts";
import { MaterialFile } from "./material-file.ts";
import { ApiError } from "./port.ts";

/** The current credentials of connections and requests. */
export interface Presented {
  /** A new object whenever existing connections have to be replaced. */
  readonly tls: TlsMaterial;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

export interface TlsMaterial {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

/** Files are checked at a request, at most this often, in milliseconds: an idle agent reads nothing. */
const LOOK_MS = 10_000;
/** Interval while a certificate is still missing: bootstrap may write it at any moment. */
const LOOK_WHILE_MISSING_MS = 1_000;
/** A plug-in's credential is renewed this long before it expires, in milliseconds. */
const EXEC_EARLY_MS = 10_000;

/** Refreshes the credentials of a `ClientConfig`: changed files, and expiring credentials of plug-ins. */
export class Credentials {
  private readonly authority: MaterialFile | undefined;
  private readonly certificate: MaterialFile | undefined;
  private readonly key: MaterialFile | undefined;
  private readonly tokenFile: MaterialFile | undefined;
  private readonly impersonation: Readonly<Record<string, string | readonly string[]>>;
  private exec: ExecCredential | undefined;
  private tls: TlsMaterial = { authority: "", certificate: "", key: "" };
  private lookAgainAt = 0;
  private looking: Promise<void> | undefined;
  private complaint = "";
  private missing: ApiError | undefined;

  constructor(
    private readonly deps: { readonly clock: Clock; readonly log: Logger },
    private readonly config: ClientConfig,
  ) {
    const { identity } = config;
    this.authority = config.authority && new MaterialFile(config.authority);
    this.certificate = identity.certificate && new MaterialFile(identity.certificate);
    this.key = identity.key && new MaterialFile(identity.key);
    this.tokenFile = identity.tokenFile ? new MaterialFile({ kind: "file", path: identity.tokenFile }) : undefined;
    this.impersonation = identity.impersonate === undefined ? {} : impersonationHeaders(identity.impersonate);
  }

  /** Rejects with `Unauthorized` if there is nothing usable yet; later failures keep the last valid credentials. */
  async current(options: Abortable): Promise<Presented> {
    if (this.deps.clock.now().mono >= this.lookAgainAt || this.isExecStale()) {
      this.looking ??= this.look().finally(() => {
        this.looking = undefined;
      });
      await orAborted(this.looking, options.signal);
    }
    // Without credentials the request would be anonymous.
    if (this.missing !== undefined) throw this.missing;
    const token = this.exec?.token || this.tokenFile?.current.trim() || this.config.identity.token || "";
    return {
      tls: this.tls,
      headers: token === "" ? this.impersonation : { ...this.impersonation, authorization: `Bearer ${token}` },
    };
  }

  /** After a 401, or a new certificate: everything is read before the next request. */
  refresh(): void {
    this.lookAgainAt = 0;
    this.exec = undefined;
    for (const file of [this.authority, this.certificate, this.key, this.tokenFile]) file?.forget();
  }

  private isExecStale(): boolean {
    if (this.config.identity.exec === undefined) return false;
    if (this.exec === undefined) return true;
    const { expiresAt } = this.exec;
    return expiresAt !== undefined && this.deps.clock.now().wall >= expiresAt - EXEC_EARLY_MS;
  }

  /** Shared by all concurrent callers, so no caller's signal ends it; a plug-in has its own timeout. */
  private async look(): Promise<void> {
    if (this.config.identity.exec !== undefined && this.isExecStale()) {
      const options = { signal: new AbortController().signal, clock: this.deps.clock };
      this.exec = await runExecPlugin(this.config.identity.exec, this.config, options);
    }
    const problem = await this.readFiles();
    const isMissing = this.certificate !== undefined && this.tls.certificate === "";
    this.lookAgainAt = this.deps.clock.now().mono + (isMissing ? LOOK_WHILE_MISSING_MS : LOOK_MS);
    this.missing = undefined;
    if (problem === undefined) {
      this.complaint = "";
      return;
    }
    if (isMissing || (this.authority !== undefined && this.tls.authority === "")) {
      this.missing = new ApiError("Unauthorized", problem);
      return;
    }
    if (problem !== this.complaint)
      this.deps.log.warn("Failed to read credentials, using the previous ones", { problem });
    this.complaint = problem;
  }

  /** Applies all changes at once; returns the problem, if any. */
  private async readFiles(): Promise<string | undefined> {
    let file: MaterialFile | undefined;
    try {
      for (file of [this.authority, this.certificate, this.key]) await file?.read();
    } catch (error) {
      return `${file?.name}: ${messageOf(error)}`;
    }
    const certificate = this.exec?.certificate || this.certificate?.current || "";
    const key = this.exec?.key || this.key?.current || "";
    const authority = this.authority?.current ?? "";
    if (this.certificate !== undefined && certificate === "") return `${this.certificate.name}: file is empty`;
    const { tls } = this;
    if (tls.certificate !== certificate || tls.key !== key || tls.authority !== authority) {
      const mismatch = certificate === "" ? undefined : whyNoPair(certificate, key);
      if (mismatch !== undefined) return `${this.certificate?.name ?? "credential plug-in"}: ${mismatch}`;
      this.tls = { certificate, key, authority };
    }
    return this.readToken();
  }

  private async readToken(): Promise<string | undefined> {
    try {
      await this.tokenFile?.read();
      return undefined;
    } catch (error) {
      return `${this.tokenFile?.name}: ${messageOf(error)}`;
    }
  }
}

/** Returns why certificate and key do not match (a rotation writes one after the other), or undefined. */
function whyNoPair(certificate: string, key: string): string | undefined {
  try {
    const matches = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
    return matches ? undefined : "the certificate does not belong to the key";
  } catch (error) {
    return `no usable certificate and key: ${messageOf(error)}`;
  }
}

function impersonationHeaders(as: Impersonation): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = { "impersonate-user": as.user };
  if (as.uid !== "") headers["impersonate-uid"] = as.uid;
  if (as.groups.length > 0) headers["impersonate-group"] = as.groups;
  for (const [key, values] of Object.entries(as.extra)) {
    headers[`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`] = values;
  }
  return headers;
}
