import { X509Certificate } from "node:crypto";
import { lstat, mkdir, open, readlink, rename, symlink, unlink } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { readIfExists, syncDirectory } from "../../lib/atomic-file.ts";
import type { Clock } from "../../lib/clock.ts";
import { CodedError, errnoOf } from "../../lib/errors.ts";

/** A certificate chain with its key, decoded. */
export interface StoredPair {
  readonly certificate: string;
  readonly key: string;
  /** Where it was read from. */
  readonly path: string;
  /** Wall-clock milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
}

/** An invalid store; the message names the file. */
export class CertStoreError extends CodedError<"NotALink" | "Unusable"> {}

export interface CertStoreOptions {
  readonly directory: string;
  /** `kubelet-client` or `kubelet-server`. */
  readonly prefix: string;
  /** Read if there is no current pair (`--tls-cert-file`, or an older installation). */
  readonly fallback?: { readonly certificate: string; readonly key: string };
}

/**
 * The files of a rotated certificate, laid out as Kubernetes does: `PREFIX-DATE.pem` (chain, then key, 0600) for each
 * pair that ever was, and `PREFIX-current.pem`, a link to the one in use.
 */
export class CertStore {
  constructor(
    private readonly clock: Clock,
    private readonly options: CertStoreOptions,
  ) {}

  /** The link; what a kubeconfig names. */
  get currentPath(): string {
    return this.path("current");
  }

  /** Loads the current pair; undefined if there is none. Repairs what a crash in `save` left behind. */
  async load(): Promise<StoredPair | undefined> {
    await this.repair();
    const { directory, prefix, fallback } = this.options;
    const current = await this.readPair(this.currentPath, this.currentPath);
    if (current !== undefined) return current;
    const given = fallback && (await this.readPair(fallback.certificate, fallback.key));
    return given ?? this.readPair(join(directory, `${prefix}.crt`), join(directory, `${prefix}.key`));
  }

  /** Persists a pair and makes it the current one. A crash leaves either the old or the new one current. */
  async save(certificate: string, key: string): Promise<StoredPair> {
    const { directory } = this.options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await this.repair();
    const stamp = new Date(this.clock.now().wall).toISOString().slice(0, 19).replace(/[T:]/g, "-");
    const path = this.path(stamp);
    const pair = inspect(certificate.trimEnd(), key.trimEnd(), path);
    await writeSecret(path, `${pair.certificate}\n${pair.key}\n`);
    await unlinkIfExists(this.path("updated"));
    await symlink(path, this.path("updated"));
    // A rename replaces the link atomically.
    await rename(this.path("updated"), this.currentPath);
    await syncDirectory(directory);
    return pair;
  }

  private path(part: string): string {
    return join(this.options.directory, `${this.options.prefix}-${part}.pem`);
  }

  /** Older agents removed `current` before they renamed `updated`: a crash between the two left only the latter. */
  private async repair(): Promise<void> {
    const current = await this.isLink(this.currentPath);
    const updated = await this.isLink(this.path("updated"));
    if (!current && updated) await rename(this.path("updated"), this.currentPath);
  }

  private async isLink(path: string): Promise<boolean> {
    try {
      const found = await lstat(path);
      if (!found.isSymbolicLink())
        throw new CertStoreError("NotALink", `${path} must be a symbolic link, but is a file; remove it`);
      return true;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return false;
      throw error;
    }
  }

  private async readPair(certificatePath: string, keyPath: string): Promise<StoredPair | undefined> {
    const certificateText = await readIfExists(certificatePath);
    const keyText = certificatePath === keyPath ? certificateText : await readIfExists(keyPath);
    if (certificateText === undefined || keyText === undefined) return undefined;
    return inspect(
      blocks(certificateText, /CERTIFICATE/),
      blocks(keyText, /PRIVATE KEY/),
      await this.target(certificatePath),
    );
  }

  private async target(path: string): Promise<string> {
    try {
      const target = await readlink(path);
      return isAbsolute(target) ? target : join(this.options.directory, target);
    } catch {
      return path;
    }
  }
}

function inspect(certificate: string, key: string, path: string): StoredPair {
  try {
    const { validFrom, validTo } = new X509Certificate(certificate);
    return { certificate, key, path, notBefore: Date.parse(validFrom), notAfter: Date.parse(validTo) };
  } catch (error) {
    throw new CertStoreError("Unusable", `${path} contains no usable certificate`, { cause: error });
  }
}

/** The PEM blocks whose label matches. */
function blocks(text: string, label: RegExp): string {
  const all = text.match(/-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g) ?? [];
  return all.filter((block) => label.test(block.slice(0, block.indexOf("\n")))).join("\n");
}

/** Created with mode 0600. A second pair within one second replaces the first. */
async function writeSecret(path: string, text: string): Promise<void> {
  await unlinkIfExists(path);
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function unlinkIfExists(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
