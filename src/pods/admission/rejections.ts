import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Rejection } from "./admission.ts";

/** Where rejections are kept; one small file of the agent's own. */
export interface RejectionFile {
  /** Empty when there is none. */
  load(): string;
  /** Replaces it as a whole. */
  save(text: string): Promise<void>;
}

/** Why a pod was refused, as the journal is told it. */
export class RejectionError extends Error {
  readonly reason: string;

  constructor({ reason, message }: Rejection) {
    super(message);
    this.reason = reason;
  }
}

interface Kept extends Rejection {
  /** What the decision was made from, as far as the node can be told apart by it. */
  readonly node: string;
}

/**
 * The pods that were refused, over restarts of the agent: a Failed pod must not run all at once because the agent was
 * started anew. It is decided again only where the node itself is another one by then (its labels, its room, its rules).
 */
export class Rejections {
  private readonly kept: Map<string, Kept>;
  private isWriting = false;
  private isChanged = false;

  constructor(private readonly deps: { file: RejectionFile; log: Pick<Logger, "warn"> }) {
    this.kept = read(deps);
  }

  get(uid: string, node: unknown): Rejection | undefined {
    const found = this.kept.get(uid);
    if (found === undefined || found.node !== JSON.stringify(node)) return undefined;
    return { reason: found.reason, message: found.message };
  }

  add(uid: string, { reason, message }: Rejection, node: unknown): void {
    this.kept.set(uid, { reason, message, node: JSON.stringify(node) });
    this.write();
  }

  /** The pod is no longer wanted, or was admitted. */
  delete(uid: string): void {
    if (this.kept.delete(uid)) this.write();
  }

  /** Those that nobody wants any more go. */
  keepOnly(isWanted: (uid: string) => boolean): void {
    for (const uid of [...this.kept.keys()]) if (!isWanted(uid)) this.delete(uid);
  }

  private write(): void {
    this.isChanged = true;
    if (!this.isWriting) void this.drain();
  }

  private async drain(): Promise<void> {
    this.isWriting = true;
    while (this.isChanged) {
      this.isChanged = false;
      const text = `${JSON.stringify({ version: 1, rejected: Object.fromEntries(this.kept) })}\n`;
      await this.deps.file.save(text).catch((error: unknown) => {
        this.deps.log.warn("the list of refused pods cannot be written", { error: messageOf(error) });
      });
    }
    this.isWriting = false;
  }
}

function read({ file, log }: { file: RejectionFile; log: Pick<Logger, "warn"> }): Map<string, Kept> {
  try {
    const text = file.load();
    const parsed: unknown = text === "" ? {} : JSON.parse(text);
    const rejected = typeof parsed === "object" && parsed !== null && "rejected" in parsed ? parsed.rejected : {};
    return new Map(Object.entries(rejected ?? {}).filter((entry): entry is [string, Kept] => isKept(entry[1])));
  } catch (error) {
    log.warn("the list of refused pods cannot be read", { error: messageOf(error) });
    return new Map();
  }
}

function isKept(value: unknown): value is Kept {
  if (typeof value !== "object" || value === null) return false;
  return ["reason", "message", "node"].every((name) => typeof Reflect.get(value, name) === "string");
}
