import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { findPortHolder } from "./port-holder.ts";

const root = mkdtempSync(join(tmpdir(), "proc-"));
after(() => rmSync(root, { recursive: true }));

const header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
const row = (local: string, state: string, inode: number): string =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0 100 0`;
mkdirSync(join(root, "net"));
writeFileSync(
  join(root, "net/tcp"),
  [header, row("0100007F:2808", "0A", 777), row("0100007F:2809", "01", 888)].join("\n"),
);
writeFileSync(join(root, "net/tcp6"), [header, row(`${"0".repeat(32)}:280A`, "0A", 999)].join("\n"));
for (const [pid, comm, inode] of [
  ["12", "other", 1],
  ["34", "nginx", 777],
  ["56", "six", 999],
] as const) {
  mkdirSync(join(root, pid, "fd"), { recursive: true });
  writeFileSync(join(root, pid, "comm"), `${comm}\n`);
  symlinkSync(`socket:[${inode}]`, join(root, pid, "fd", "3"));
}

const cases = [
  { name: "the process with the listening socket is named", port: 0x2808, want: { pid: 34, command: "nginx" } },
  { name: "IPv6 sockets count too", port: 0x280a, want: { pid: 56, command: "six" } },
  { name: "a connection that is not listening does not count", port: 0x2809, want: undefined },
  { name: "a free port has no holder", port: 80, want: undefined },
];
for (const c of cases) test(c.name, () => assert.deepEqual(findPortHolder(c.port, root), c.want));

test("without /proc the holder is not named", () => assert.equal(findPortHolder(80, join(root, "none")), undefined));
