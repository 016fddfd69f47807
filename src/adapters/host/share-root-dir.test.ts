import assert from "node:assert/strict";
import { test } from "node:test";
import { shareRootDir } from "./share-root-dir.ts";

const cases: { name: string; makeShared: (path: string) => Promise<boolean>; want: string[] }[] = [
  {
    name: "a directory on a private mount is made shared, and logged",
    makeShared: () => Promise.resolve(true),
    want: ['info Made root directory a shared mount {"path":"/root-dir"}'],
  },
  {
    name: "a directory on a shared mount is left as it is",
    makeShared: () => Promise.resolve(false),
    want: [],
  },
  {
    name: "where mounting is not permitted the agent starts, with a warning",
    makeShared: (path) => Promise.reject(new Error(`mount ${path}: operation not permitted`)),
    want: [
      'warn Failed to make root directory a shared mount {"path":"/root-dir","error":"mount /root-dir: operation not permitted"}',
    ],
  },
];
for (const { name, makeShared, want } of cases) {
  test(name, async () => {
    const logged: string[] = [];
    const write =
      (level: string) =>
      (message: string, fields = {}): void =>
        void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
    await shareRootDir({ host: { makeShared }, log: { info: write("info"), warn: write("warn") } }, "/root-dir");
    assert.deepEqual(logged, want);
  });
}
