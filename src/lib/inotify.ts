import { closeSync, readSync } from "node:fs";
import { errnoOf } from "./errors.ts";
import { loadNative, type Native, systemError } from "./native.ts";

/** Bits of inotify(7), those that the agent sets or receives. */
export const MASK = {
  modify: 0x2,
  attrib: 0x4,
  closeWrite: 0x8,
  open: 0x20,
  movedFrom: 0x40,
  movedTo: 0x80,
  create: 0x100,
  delete: 0x200,
  deleteSelf: 0x400,
  moveSelf: 0x800,
  unmount: 0x2000,
  overflow: 0x4000,
  ignored: 0x8000,
} as const;

const ONLYDIR = 0x01000000;
const NONBLOCK_CLOEXEC = 0x80800;
const HEADER_BYTES = 16;

export interface InotifyEvent {
  readonly descriptor: number;
  readonly mask: number;
  /** Empty for events of the directory itself. */
  readonly name: string;
}

/**
 * inotify(7) itself, because fs.watch reports `rename` for a removal, a creation and a replacement alike, and nothing
 * for an overflow. The descriptor is polled by libuv (no thread waits) and read without blocking.
 */
export class Inotify {
  private readonly buffer = Buffer.allocUnsafe(64 * 1024);
  private poll: { close(): void } | undefined;
  private isOpen = true;

  private constructor(
    private readonly native: Native,
    private readonly fd: number,
    private readonly calls: {
      add: (fd: number, path: string, mask: number) => number;
      remove: (fd: number, wd: number) => number;
    },
  ) {}

  /** Undefined where the machine has no koffi, no inotify, or no instance left. */
  static async open(): Promise<Inotify | undefined> {
    const native = await loadNative();
    if (native === undefined) return undefined;
    try {
      const init = native.libc.func("int inotify_init1(int flags)");
      const add = native.libc.func("int inotify_add_watch(int fd, const char *path, uint32_t mask)");
      const remove = native.libc.func("int inotify_rm_watch(int fd, int wd)");
      const fd: number = init(NONBLOCK_CLOEXEC);
      return fd < 0 ? undefined : new Inotify(native, fd, { add, remove });
    } catch {
      return undefined;
    }
  }

  /** Calls `listener` for each event, in the kernel's order, until `close`. Called once. */
  listen(listener: (event: InotifyEvent) => void): void {
    this.poll = this.native.koffi.node.poll(this.fd, { readable: true }, () => {
      for (const event of this.read()) if (this.isOpen) listener(event);
    });
  }

  /** Watches a directory; the same one again gives the same number and the new mask. */
  add(path: string, mask: number): number {
    const descriptor = this.calls.add(this.fd, path, mask | ONLYDIR);
    if (descriptor >= 0) return descriptor;
    throw systemError(this.native, { syscall: "inotify_add_watch", path, errno: this.native.koffi.errno() });
  }

  /** Ends a watch; one that has ended already is fine. */
  remove(descriptor: number): void {
    this.calls.remove(this.fd, descriptor);
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.poll?.close();
    closeSync(this.fd);
  }

  /** One bufferful; libuv calls again while there is more, so that a flood does not hold the event loop. */
  private read(): InotifyEvent[] {
    if (!this.isOpen) return [];
    let length = 0;
    try {
      length = readSync(this.fd, this.buffer, 0, this.buffer.length, null);
    } catch (error) {
      if (errnoOf(error) !== "EAGAIN" && errnoOf(error) !== "EINTR") throw error;
    }
    return parseEvents(this.buffer.subarray(0, length));
  }
}

/** The kernel writes whole events: number, mask, cookie and length of the name (4 bytes each), then the padded name. */
export function parseEvents(buffer: Buffer): InotifyEvent[] {
  const events: InotifyEvent[] = [];
  for (let at = 0; at + HEADER_BYTES <= buffer.length; ) {
    const descriptor = buffer.readInt32LE(at);
    const mask = buffer.readUInt32LE(at + 4);
    const nameBytes = buffer.readUInt32LE(at + 12);
    const name = buffer.toString("utf8", at + HEADER_BYTES, at + HEADER_BYTES + nameBytes).replace(/\0+$/, "");
    events.push({ descriptor, mask, name });
    at += HEADER_BYTES + nameBytes;
  }
  return events;
}
