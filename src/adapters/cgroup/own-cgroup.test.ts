import assert from "node:assert/strict";
import { test } from "node:test";
import { parseOwnCgroup } from "./own-cgroup.ts";

const cases: { name: string; text: string; want: string | undefined }[] = [
  { name: "version 2", text: "0::/system.slice/kubelet.service\n", want: "/system.slice/kubelet.service" },
  { name: "version 2, topmost", text: "0::/\n", want: undefined },
  {
    name: "version 1, CPU and memory together",
    text: "4:memory:/kubelet\n3:cpu,cpuacct:/kubelet\n1:name=systemd:/other\n0::/other\n",
    want: "/kubelet",
  },
  { name: "version 1, only memory", text: "4:memory:/kubelet\n1:cpu:/\n0::/\n", want: undefined },
  { name: "a path with a colon", text: "0::/a:b\n", want: "/a:b" },
  { name: "no cgroups", text: "", want: undefined },
];
for (const { name, text, want } of cases) {
  test(`own cgroup: ${name}`, () => assert.equal(parseOwnCgroup(text), want));
}
