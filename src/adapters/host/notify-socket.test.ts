import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadNative } from "../../lib/native.ts";
import { sendDatagram, unixAddress } from "./notify-socket.ts";

/** A datagram socket that takes what is sent to it; undefined without native calls. */
async function receiver(path: string): Promise<{ take(): string | undefined; close(): void } | undefined> {
  const native = await loadNative();
  if (native === undefined) return undefined;
  const { libc } = native;
  const socket = libc.func("int socket(int domain, int type, int protocol)");
  const bind = libc.func("int bind(int fd, const void *address, uint length)");
  const recv = libc.func("intptr_t recv(int fd, void *buffer, size_t size, int flags)");
  const fd = Number(socket(1, 2, 0));
  const address = unixAddress(path);
  assert.equal(Number(bind(fd, address, address.length)), 0);
  return {
    take: () => {
      const buffer = Buffer.alloc(256);
      const size = Number(recv(fd, buffer, buffer.length, 0x40));
      return size < 0 ? undefined : buffer.toString("utf8", 0, size);
    },
    close: () => void libc.func("int close(int fd)")(fd),
  };
}

const directory = mkdtempSync(join(tmpdir(), "n-"));
test.after(() => rmSync(directory, { recursive: true, force: true }));

for (const path of [join(directory, "notify"), `@kubelet-notify-${process.pid}`]) {
  test(`a datagram reaches ${path.startsWith("@") ? "an abstract socket" : "a socket in the file system"}`, async (t) => {
    const socket = await receiver(path);
    if (socket === undefined) return t.skip("no native calls here");
    try {
      await sendDatagram(path, "READY=1");
      assert.equal(socket.take(), "READY=1");
      assert.equal(socket.take(), undefined);
    } finally {
      socket.close();
    }
  });
}

test("a missing socket is an error with its code", async (t) => {
  if ((await loadNative()) === undefined) return t.skip("no native calls here");
  await assert.rejects(sendDatagram(join(directory, "nobody"), "x"), { code: "ENOENT" });
});

test("an invalid address is an error that names it", () => {
  for (const path of ["", "relative", "vsock:2:1", `/${"x".repeat(107)}`])
    assert.throws(() => unixAddress(path), /path/);
});
