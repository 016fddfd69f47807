import type { LogFile, LogFiles } from "../../src/adapters/objectlog/files.ts";

type Change = { readonly at: number; readonly bytes: Buffer } | { readonly length: number };

interface Inode {
  /** What a reader sees. */
  content: Buffer;
  /** What survives for sure. */
  durable: Buffer;
  /** Changes since the last sync: each may survive in parts. */
  pending: Change[];
  /** Changes of a sync that failed: the kernel has dropped them, and no later sync brings them back. */
  doubtful: Change[];
}

/** Numbers of operations that fail, counted from 0. */
export interface DiskFaults {
  /** Operation → errno. A failed write leaves half of its bytes. */
  readonly failing?: ReadonlyMap<number, string>;
  /** From this operation on everything fails with `EPOWER`. */
  readonly cutAt?: number;
}

const BLOCK = 16;

/** A disk in memory that keeps for sure only what was synced, as disks do. Fails and loses power as a test asks for. */
export class PowerCutDisk implements LogFiles {
  private names = new Map<string, Inode>();
  private durableNames = new Map<string, Inode>();
  private operations = 0;

  constructor(
    private readonly faults: DiskFaults = {},
    /** From 0 to below 1. */
    private readonly random: () => number = Math.random,
  ) {}

  /** The disk as it is after the power came back. */
  afterPowerCut(faults: DiskFaults = {}): PowerCutDisk {
    const next = new PowerCutDisk(faults, this.random);
    const names = this.random() < 0.5 ? this.names : this.durableNames;
    for (const [path, inode] of names) {
      const content = this.survivor(inode);
      next.names.set(path, { content, durable: content, pending: [], doubtful: [] });
    }
    next.durableNames = new Map(next.names);
    return next;
  }

  async open(path: string): Promise<LogFile> {
    this.step();
    const inode = this.names.get(path) ?? { content: empty(), durable: empty(), pending: [], doubtful: [] };
    this.names.set(path, inode);
    return {
      write: async (bytes, at) => this.change(inode, { at, bytes }),
      truncate: async (length) => this.change(inode, { length }),
      read: async (at, length) => Buffer.from(inode.content.subarray(at, at + length)),
      size: async () => inode.content.length,
      close: async () => undefined,
      sync: async () => {
        try {
          this.step();
        } catch (error) {
          inode.doubtful.push(...inode.pending);
          inode.pending = [];
          throw error;
        }
        inode.durable = inode.pending.reduce(apply, inode.durable);
        inode.pending = [];
      },
    };
  }

  async rename(from: string, to: string): Promise<void> {
    this.step();
    const inode = this.names.get(from);
    if (inode === undefined) throw failure("ENOENT");
    this.names.set(to, inode);
    this.names.delete(from);
  }

  async syncDirectory(): Promise<void> {
    this.step();
    this.durableNames = new Map(this.names);
  }

  async remove(path: string): Promise<void> {
    this.step();
    this.names.delete(path);
  }

  async readSmall(path: string): Promise<Buffer | undefined> {
    return this.names.get(path)?.content;
  }

  async writeSmall(path: string, bytes: Buffer): Promise<void> {
    this.step();
    const inode = { content: bytes, durable: bytes, pending: [], doubtful: [] };
    this.names.set(path, inode);
    this.durableNames.set(path, inode);
  }

  /** The bytes of a file, for tests that look at them. */
  contentOf(path: string): Buffer {
    return this.names.get(path)?.content ?? empty();
  }

  private change(inode: Inode, change: Change): void {
    try {
      this.step();
    } catch (error) {
      if ("bytes" in change) {
        const half = { at: change.at, bytes: change.bytes.subarray(0, change.bytes.length >> 1) };
        inode.content = apply(inode.content, half);
        inode.pending.push(half);
      }
      throw error;
    }
    inode.content = apply(inode.content, change);
    inode.pending.push(change);
  }

  private step(): void {
    const number = this.operations++;
    if (this.faults.cutAt !== undefined && number >= this.faults.cutAt) throw failure("EPOWER");
    const errno = this.faults.failing?.get(number);
    if (errno !== undefined) throw failure(errno);
  }

  /** Any block of an unsynced write may be on disk, whatever came of the others. */
  private survivor(inode: Inode): Buffer {
    let content = inode.durable;
    for (const change of [...inode.doubtful, ...inode.pending]) {
      if ("length" in change) {
        if (this.random() < 0.5) content = apply(content, change);
        continue;
      }
      for (let from = 0; from < change.bytes.length; from += BLOCK) {
        const bytes = change.bytes.subarray(from, from + BLOCK);
        if (this.random() < 0.7) content = apply(content, { at: change.at + from, bytes });
      }
    }
    return content;
  }
}

function apply(content: Buffer, change: Change): Buffer {
  if ("length" in change) {
    return Buffer.concat([
      content.subarray(0, change.length),
      Buffer.alloc(Math.max(0, change.length - content.length)),
    ]);
  }
  const next = Buffer.alloc(Math.max(content.length, change.at + change.bytes.length));
  content.copy(next);
  change.bytes.copy(next, change.at);
  return next;
}

function empty(): Buffer {
  return Buffer.alloc(0);
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}
