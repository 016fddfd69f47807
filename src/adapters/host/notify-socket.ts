import { loadNative, systemError } from "../../lib/native.ts";

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_NOSIGNAL_DONTWAIT = 0x4000 | 0x40;
const LONGEST_PATH = 107;

/** A unix address as the kernel takes it; a leading `@` stands for the abstract namespace, as systemd writes it. */
export function unixAddress(path: string): Buffer {
  const name = Buffer.from(path);
  if (name.length === 0 || name.length > LONGEST_PATH) throw new Error(`${path}: is not the path of a unix socket`);
  const isAbstract = path.startsWith("@");
  if (!isAbstract && !path.startsWith("/")) throw new Error(`${path}: must be an absolute path or begin with @`);
  if (isAbstract) name[0] = 0;
  const address = Buffer.alloc(2 + name.length + (isAbstract ? 0 : 1));
  address.writeUInt16LE(AF_UNIX, 0);
  name.copy(address, 2);
  return address;
}

/**
 * Sends one datagram to a unix socket, which Node cannot: how a service tells systemd that it is ready or alive.
 * Never waits: a receiver that is full fails it with EAGAIN. Rejects without native calls.
 */
export async function sendDatagram(path: string, text: string): Promise<void> {
  const native = await loadNative();
  if (native === undefined) throw new Error("send datagram: the C library is not available");
  const { libc } = native;
  const address = unixAddress(path);
  const body = Buffer.from(text);
  const checked = (syscall: string, result: unknown): number => {
    if (Number(result) === -1) throw systemError(native, { syscall, path, errno: native.koffi.errno() });
    return Number(result);
  };
  const socket = libc.func("int socket(int domain, int type, int protocol)");
  const send = libc.func(
    "intptr_t sendto(int fd, const void *bytes, size_t size, int flags, const void *address, uint length)",
  );
  const fd = checked("socket", socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0));
  try {
    checked("sendto", send(fd, body, body.length, MSG_NOSIGNAL_DONTWAIT, address, address.length));
  } finally {
    libc.func("int close(int fd)")(fd);
  }
}
