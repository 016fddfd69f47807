import { loadNative, type Native, systemError } from "../../lib/native.ts";
import { unixAddress } from "../host/notify-socket.ts";

const AF_UNIX = 1;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const STREAM_NONBLOCK_CLOEXEC = 1 | 0o4000 | 0o2000000;
const MSG_NOSIGNAL_DONTWAIT = 0x4000 | 0x40;
const MSG_CMSG_CLOEXEC_DONTWAIT = 0x40000000 | 0x40;
const READ_BYTES = 64 * 1024;
const CONTROL_BYTES = 256;
/** Sizes of the kernel's structures on 64-bit machines. */
const MSGHDR_BYTES = 56;
const IOVEC_BYTES = 16;
const CMSGHDR_BYTES = 16;

/** Callbacks of a socket. */
export interface FdSocketHandler {
  /** Bytes, and the file descriptors that came with them, which belong to the receiver from now on. */
  data(bytes: Buffer, fds: readonly number[]): void;
  /** The other side closed the connection, or it failed. Called at most once, and not after `close`. */
  closed(error: Error | undefined): void;
}

/** A connection to a unix socket that can receive file descriptors, which Node's own cannot. */
export class FdSocket {
  private readonly buffer = Buffer.alloc(READ_BYTES);
  private readonly control = Buffer.alloc(CONTROL_BYTES);
  private readonly vector = Buffer.alloc(IOVEC_BYTES);
  private readonly header = Buffer.alloc(MSGHDR_BYTES);
  private readonly calls: SocketCalls;
  private poll: { close(): void } | undefined;
  private isOpen = true;

  private constructor(
    private readonly native: Native,
    private readonly fd: number,
    private readonly handler: FdSocketHandler,
  ) {
    this.calls = socketCalls(native);
    this.layOut(this.header, { data: this.buffer, vector: this.vector, control: this.control });
  }

  /** Connects; rejects if nobody listens there, or without native calls. */
  static async connect(path: string, handler: FdSocketHandler): Promise<FdSocket> {
    const native = await loadNative();
    if (native === undefined) throw new Error(`connect to ${path}: the C library is not available`);
    const calls = socketCalls(native);
    const fd = calls.socket(AF_UNIX, STREAM_NONBLOCK_CLOEXEC, 0);
    const failed = (syscall: string): Error => systemError(native, { syscall, path, errno: native.koffi.errno() });
    if (fd < 0) throw failed("socket");
    const address = unixAddress(path);
    if (calls.connect(fd, address, address.length) !== 0) {
      const error = failed("connect");
      calls.close(fd);
      throw error;
    }
    const socket = new FdSocket(native, fd, handler);
    socket.poll = native.koffi.node.poll(fd, { readable: true, disconnect: true }, () => socket.read());
    return socket;
  }

  /** Sends all of the bytes; throws if the other side does not take them at once: what is sent here is small. */
  send(bytes: Buffer, fds: readonly number[] = []): void {
    const { header, kept } = this.outgoing(bytes, fds);
    const sent = Number(this.calls.sendmsg(this.fd, header, MSG_NOSIGNAL_DONTWAIT));
    // The kernel reads them through their addresses: they must outlive the call.
    kept.length = 0;
    if (sent === bytes.length) return;
    if (sent < 0) throw systemError(this.native, { syscall: "sendmsg", errno: this.native.koffi.errno() });
    throw new Error(`send ${bytes.length} bytes: the receiver took only ${sent}`);
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.poll?.close();
    this.calls.close(this.fd);
  }

  private read(): void {
    if (!this.isOpen) return;
    this.header.writeBigUInt64LE(BigInt(CONTROL_BYTES), 40);
    const length = Number(this.calls.recvmsg(this.fd, this.header, MSG_CMSG_CLOEXEC_DONTWAIT));
    if (length < 0) {
      const errno = this.native.koffi.errno();
      const { EAGAIN, EINTR } = this.native.koffi.os.errno;
      if (errno === EAGAIN || errno === EINTR) return;
      return this.end(systemError(this.native, { syscall: "recvmsg", errno }));
    }
    const fds = this.received();
    if (length === 0) return this.end(undefined);
    // A copy: the next read uses the same buffer.
    this.handler.data(Buffer.from(this.buffer.subarray(0, length)), fds);
  }

  private end(error: Error | undefined): void {
    this.close();
    this.handler.closed(error);
  }

  /** `struct msghdr`: name, its length, vector, its count, control, its length, flags. */
  private layOut(header: Buffer, { data, vector, control }: Record<"data" | "vector" | "control", Buffer>): void {
    const { koffi } = this.native;
    vector.writeBigUInt64LE(koffi.address(data), 0);
    vector.writeBigUInt64LE(BigInt(data.length), 8);
    header.writeBigUInt64LE(koffi.address(vector), 16);
    header.writeBigUInt64LE(1n, 24);
    header.writeBigUInt64LE(control.length === 0 ? 0n : koffi.address(control), 32);
    header.writeBigUInt64LE(BigInt(control.length), 40);
  }

  private outgoing(data: Buffer, fds: readonly number[]): { header: Buffer; kept: Buffer[] } {
    const [header, vector] = [Buffer.alloc(MSGHDR_BYTES), Buffer.alloc(IOVEC_BYTES)];
    const control = Buffer.alloc(fds.length === 0 ? 0 : CMSGHDR_BYTES + Math.ceil((fds.length * 4) / 8) * 8);
    if (fds.length > 0) {
      control.writeBigUInt64LE(BigInt(CMSGHDR_BYTES + fds.length * 4), 0);
      control.writeInt32LE(SOL_SOCKET, 8);
      control.writeInt32LE(SCM_RIGHTS, 12);
      fds.forEach((fd, i) => control.writeInt32LE(fd, CMSGHDR_BYTES + i * 4));
    }
    this.layOut(header, { data, vector, control });
    return { header, kept: [data, vector, control] };
  }

  /** The descriptors in the control messages: each has its length, level and kind before its data. */
  private received(): number[] {
    const total = Number(this.header.readBigUInt64LE(40));
    const fds: number[] = [];
    for (let at = 0; at + CMSGHDR_BYTES <= total; ) {
      const length = Number(this.control.readBigUInt64LE(at));
      if (length < CMSGHDR_BYTES || at + length > total) break;
      const isRights =
        this.control.readInt32LE(at + 8) === SOL_SOCKET && this.control.readInt32LE(at + 12) === SCM_RIGHTS;
      for (let of = at + CMSGHDR_BYTES; isRights && of + 4 <= at + length; of += 4) {
        fds.push(this.control.readInt32LE(of));
      }
      at += Math.ceil(length / 8) * 8;
    }
    return fds;
  }
}

interface SocketCalls {
  socket(domain: number, type: number, protocol: number): number;
  connect(fd: number, address: Buffer, length: number): number;
  sendmsg(fd: number, message: Buffer, flags: number): number | bigint;
  recvmsg(fd: number, message: Buffer, flags: number): number | bigint;
  close(fd: number): number;
}

function socketCalls({ libc }: Native): SocketCalls {
  // reason: koffi's functions have no types of their own
  return {
    socket: libc.func("int socket(int domain, int type, int protocol)") as unknown as SocketCalls["socket"],
    connect: libc.func("int connect(int fd, const void *address, uint length)") as unknown as SocketCalls["connect"],
    sendmsg: libc.func("intptr_t sendmsg(int fd, const void *message, int flags)") as unknown as SocketCalls["sendmsg"],
    recvmsg: libc.func("intptr_t recvmsg(int fd, void *message, int flags)") as unknown as SocketCalls["recvmsg"],
    close: libc.func("int close(int fd)") as unknown as SocketCalls["close"],
  };
}
