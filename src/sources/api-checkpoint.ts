import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { readIfExists, writeAtomic } from "../lib/atomic-file.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { ConfigMap, Pod, RuntimeClass, Secret, Service } from "../model/generated/types.ts";

/** Changes that come together are written together, this long after the first. */
const WRITE_AFTER_MS = 2000;
const VERSION = 1;
const CIPHER = "aes-256-gcm";

/** All that is needed to start pods without the API server. */
export interface CheckpointContent {
  readonly pods: readonly Pod[];
  readonly configMaps: readonly ConfigMap[];
  readonly secrets: readonly Secret[];
  readonly services: readonly Service[];
  readonly runtimeClasses: readonly RuntimeClass[];
  /** Tokens of service accounts by what they were asked for. */
  readonly tokens: Readonly<Record<string, { readonly token: string; readonly endsAt: number }>>;
}

export interface CheckpointDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** What is to be kept now. */
  content(): CheckpointContent;
}

/**
 * What the API server said last, on disk for a start without it. All of it is encrypted, by a key in a file beside it
 * that only root can read: whoever gets hold of the one file has no secret yet.
 */
export class ApiCheckpoint {
  private timer: Timer | undefined;
  private written: string | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly deps: CheckpointDeps,
    private readonly directory: string,
  ) {}

  /** What an earlier agent wrote; undefined when there is nothing that can be read. */
  async load(): Promise<CheckpointContent | undefined> {
    try {
      const [sealed, key] = await Promise.all([readIfExists(this.file), readIfExists(this.keyFile)]);
      if (sealed === undefined || key === undefined) return undefined;
      const text = open(sealed, Buffer.from(key.trim(), "hex"));
      const parsed = JSON.parse(text) as { version: number; content: CheckpointContent }; // reason: sealed by ourselves
      if (parsed.version !== VERSION) return undefined;
      this.written = JSON.stringify(parsed.content);
      return parsed.content;
    } catch (error) {
      this.deps.log.warn("what was kept of the API server cannot be read", { error: messageOf(error) });
      return undefined;
    }
  }

  /** Something that is kept may have changed. */
  touch(): void {
    this.timer ??= this.deps.clock.after(WRITE_AFTER_MS, () => {
      this.timer = undefined;
      this.writing = this.writing.then(() => this.write());
    });
  }

  /** Resolves when nothing is left to write; what was not begun is dropped. */
  async close(): Promise<void> {
    this.timer?.cancel();
    await this.writing;
  }

  private async write(): Promise<void> {
    const content = this.deps.content();
    const text = JSON.stringify(content);
    if (text === this.written) return;
    try {
      const key = await this.key();
      await writeAtomic(this.file, seal(JSON.stringify({ version: VERSION, content }), key), { mode: 0o600 });
      this.written = text;
    } catch (error) {
      this.deps.log.warn("what the API server said cannot be kept", { error: messageOf(error) });
    }
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

/** `IV TAG DATA`, each in base64. */
function seal(text: string, key: Buffer): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv(CIPHER, key, iv);
  const data = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return [iv, cipher.getAuthTag(), data].map((part) => part.toString("base64")).join(" ");
}

function open(sealed: string, key: Buffer): string {
  const [iv, tag, data] = sealed.split(" ").map((part) => Buffer.from(part, "base64"));
  if (iv === undefined || tag === undefined || data === undefined) throw new Error("it is cut off");
  const decipher = createDecipheriv(CIPHER, key, iv);
  decipher.setAuthTag(tag);
  return Buffer.concat([decipher.update(data), decipher.final()]).toString("utf8");
}

/** Opts a pod in: its owner knows that two of it may run for a while. */
export const OFFLINE_START_ANNOTATION = "kubelet-ts/start-without-api-server";

/** True when the pod may run here although it may have been replaced elsewhere meanwhile. Pure. */
export function maySafelyRunTwice(pod: Pod): boolean {
  const owners = pod.metadata.ownerReferences ?? [];
  if (owners.some(({ kind }) => kind === "StatefulSet")) return false;
  const volumes = pod.spec.volumes ?? [];
  const hasClaim = volumes.some(({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim || ephemeral);
  if (hasClaim || pod.metadata.deletionTimestamp !== undefined) return false;
  const isFinal = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
  if (isFinal) return false;
  const isDaemon = owners.some(({ kind, controller }) => kind === "DaemonSet" && controller === true);
  return isDaemon || pod.metadata.annotations?.[OFFLINE_START_ANNOTATION] === "true";
}
