import assert from "node:assert/strict";
import { test } from "node:test";
import { makePluginDirectories } from "./plugin-directories.ts";

const NAMES = ["plugins", "plugins_registry", "device-plugins"];
const made = NAMES.map((name) => `make /root-dir/${name} 750`);
const labelled = NAMES.map((name) => `chcon -- system_u:object_r:container_file_t:s0 /root-dir/${name}`);
const both = made.flatMap((call, at) => [call, labelled[at]]);
const warning = (path: string): string =>
  `Failed to set SELinux label of plugin directory: set SELinux label of ${path}: not permitted`;

const cases = [
  { name: "are made without a label where there is no SELinux", hasSelinux: false, code: 0, want: made, warnings: [] },
  { name: "have the label of containers' files with SELinux", hasSelinux: true, code: 0, want: both, warnings: [] },
  {
    name: "without a label keep no agent from starting",
    hasSelinux: true,
    code: 1,
    want: both,
    warnings: NAMES.map((name) => warning(`/root-dir/${name}`)),
  },
];
for (const { name, hasSelinux, code, want, warnings } of cases) {
  test(`directories of plugins ${name}`, async () => {
    const calls: string[] = [];
    const logged: string[] = [];
    const host = {
      makeDir: (path: string, mode: number) => Promise.resolve(void calls.push(`make ${path} ${mode.toString(8)}`)),
      exec: (file: string, args: readonly string[]) => {
        calls.push([file, ...args].join(" "));
        return Promise.resolve({ code, stdout: "", stderr: "not permitted\n" });
      },
    };
    const log = {
      warn: (message: string, fields = {}) => void logged.push(`${message}: ${Reflect.get(fields, "error")}`),
    };
    await makePluginDirectories({ host, log }, { rootDir: "/root-dir", hasSelinux });
    assert.deepEqual([calls, logged], [want, warnings]);
  });
}
