import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sysctlName } from "./sysctl-name.ts";

describe("a sysctl's name is normalized to the form with dots", () => {
  const cases: [string, string][] = [
    ["kernel.shm_rmid_forced", "kernel.shm_rmid_forced"],
    ["net/ipv4/tcp_syncookies", "net.ipv4.tcp_syncookies"],
    ["net/ipv4/conf/eth0.1/forwarding", "net.ipv4.conf.eth0/1.forwarding"],
    ["net.ipv4.conf.eth0/1.forwarding", "net.ipv4.conf.eth0/1.forwarding"],
    ["kernel", "kernel"],
  ];
  for (const [written, want] of cases) test(written, () => assert.equal(sysctlName(written), want));
});
