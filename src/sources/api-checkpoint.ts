import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { readIfExists, removeIfExists, writeAtomic } from "../lib/atomic-file.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { ConfigMap, Pod, RuntimeClass, Secret, Service } from "../model/generated/types.ts";

/** Changes are written together, this long after the first one, in milliseconds. */
const WRITE_AFTER_MS = 2000;
/** Version 1 contained Secrets and service account tokens. */
const VERSION = 2;
const CIPHER = "aes-256-gcm";

/** What pods need to start without the API server. Service account tokens are never part of it. */
export interface CheckpointContent {
  readonly pods: readonly Pod[];
  readonly configMaps: readonly ConfigMap[];
  /** Empty without `--checkpoint-secrets`. */
  readonly secrets: readonly Secret[];
  readonly services: readonly Service[];
  readonly runtimeClasses: readonly RuntimeClass[];
}

export interface CheckpointDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns what is to be written now. */
  content(): CheckpointContent;
  /** True if Secrets may be on disk. */
  mayHoldSecrets(): boolean;
}

/**
 * The last known objects of the API server on disk, for a start without it. The file is encrypted with a key in a file
 * beside it, both readable by root only: that protects a copy of the one file, not a disk that is stolen whole.
 */
export class ApiCheckpoint {
  private timer: Timer | undefined;
  private written: string | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly deps: CheckpointDeps,
    private readonly directory: string,
  ) {}

  /** Returns what an earlier agent wrote, without anything that may not be on disk; undefined if it is unreadable. */
  async load(): Promise<CheckpointContent | undefined> {
    const stored = await this.readOrWarn();
    return stored === undefined || stored === "unusable" ? undefined : this.allowed(stored);
  }

  /**
   * Removes Secrets and tokens that an earlier agent wrote and that may not be on disk: the file is replaced by one
   * without them, or deleted if it cannot be replaced or decrypted. To be called at the start.
   */
  async purge(): Promise<void> {
    const stored = await this.readOrWarn();
    try {
      if (stored === undefined) return;
      if (stored === "unusable") return await removeIfExists(this.file);
      const allowed = this.allowed(stored);
      if (stored.version === VERSION && allowed.secrets.length === stored.content.secrets.length) return;
      await this.replace(allowed);
      this.deps.log.info("Removed secrets from the checkpoint");
    } catch (error) {
      this.deps.log.warn("Failed to remove secrets from the checkpoint", { error: messageOf(error) });
    }
  }

  /** Something that is checkpointed may have changed. */
  touch(): void {
    this.timer ??= this.deps.clock.after(WRITE_AFTER_MS, () => {
      this.timer = undefined;
      this.writing = this.writing.then(() => this.write());
    });
  }

  /** Resolves when the running write has finished; a scheduled one is dropped. */
  async close(): Promise<void> {
    this.timer?.cancel();
    await this.writing;
  }

  private async write(): Promise<void> {
    const content = this.deps.content();
    const text = JSON.stringify(content);
    if (text === this.written) return;
    try {
      await this.store(content);
      this.written = text;
    } catch (error) {
      this.deps.log.warn("Failed to write checkpoint", { error: messageOf(error) });
    }
  }

  /** Without space for the new file the old one is deleted all the same. */
  private async replace(content: CheckpointContent): Promise<void> {
    try {
      await this.store(content);
    } catch (error) {
      this.deps.log.warn("Failed to write checkpoint, deleting it", { error: messageOf(error) });
      await removeIfExists(this.file);
    }
  }

  private async store(content: CheckpointContent): Promise<void> {
    const key = await this.key();
    await writeAtomic(this.file, seal(JSON.stringify({ version: VERSION, content }), key), { mode: 0o600 });
  }

  /** Undefined if there is none, or if it cannot be read now; "unusable" if nobody can make sense of it any more. */
  private async readOrWarn(): Promise<StoredCheckpoint | "unusable" | undefined> {
    try {
      const [sealed, key] = await Promise.all([readIfExists(this.file), readIfExists(this.keyFile)]);
      return sealed === undefined ? undefined : this.decrypt(sealed, key);
    } catch (error) {
      this.deps.log.warn("Failed to read checkpoint", { error: messageOf(error) });
      return undefined;
    }
  }

  private decrypt(sealed: string, key: string | undefined): StoredCheckpoint | "unusable" {
    if (key === undefined) return "unusable";
    try {
      // reason: sealed by ourselves
      const stored = JSON.parse(unseal(sealed, Buffer.from(key.trim(), "hex"))) as StoredCheckpoint;
      return stored.version === VERSION || stored.version === 1 ? stored : "unusable";
    } catch (error) {
      this.deps.log.warn("Failed to decrypt checkpoint", { error: messageOf(error) });
      return "unusable";
    }
  }

  private allowed({ content }: StoredCheckpoint): CheckpointContent {
    const { pods, configMaps, secrets, services, runtimeClasses } = content;
    return { pods, configMaps, secrets: this.deps.mayHoldSecrets() ? secrets : [], services, runtimeClasses };
  }

  private async key(): Promise<Buffer> {
    const kept = (await readIfExists(this.keyFile))?.trim() ?? "";
    if (/^[0-9a-f]{64}$/.test(kept)) return Buffer.from(kept, "hex");
    const made = randomBytes(32);
    await writeAtomic(this.keyFile, `${made.toString("hex")}\n`, { mode: 0o600 });
    return made;
  }

  private get file(): string {
    return `${this.directory}/api-checkpoint`;
  }

  private get keyFile(): string {
    return `${this.directory}/api-checkpoint.key`;
  }
}

interface StoredCheckpoint {
  readonly version: number;
  readonly content: CheckpointContent;
}

/** Encrypts a text to `IV TAG DATA`, each in base64. */
export function seal(text: string, key: Buffer): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv(CIPHER, key, iv);
  const data = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return [iv, cipher.getAuthTag(), data].map((part) => part.toString("base64")).join(" ");
}

/** The reverse of `seal`; throws if the key does not fit. */
export function unseal(sealed: string, key: Buffer): string {
  const [iv, tag, data] = sealed.split(" ").map((part) => Buffer.from(part, "base64"));
  if (iv === undefined || tag === undefined || data === undefined)
    throw new Error("decrypt checkpoint: file is truncated");
  const decipher = createDecipheriv(CIPHER, key, iv);
  decipher.setAuthTag(tag);
  return Buffer.concat([decipher.update(data), decipher.final()]).toString("utf8");
}

/** Opts a pod in: its owner accepts that two instances may run for a while. */
export const OFFLINE_START_ANNOTATION = "kubelet-ts/start-without-api-server";

/** True if the pod ended, as far as the API server knows. Pure. */
export function isTerminalPod({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** True if the pod may run here although it may have been replaced elsewhere meanwhile. Pure. */
export function maySafelyRunTwice(pod: Pod): boolean {
  const owners = pod.metadata.ownerReferences ?? [];
  if (owners.some(({ kind }) => kind === "StatefulSet")) return false;
  const volumes = pod.spec.volumes ?? [];
  const hasClaim = volumes.some(({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim || ephemeral);
  if (hasClaim || pod.metadata.deletionTimestamp !== undefined) return false;
  if (isTerminalPod(pod)) return false;
  const isDaemon = owners.some(({ kind, controller }) => kind === "DaemonSet" && controller === true);
  return isDaemon || pod.metadata.annotations?.[OFFLINE_START_ANNOTATION] === "true";
}
