import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readSelinuxContexts } from "./selinux-contexts.ts";

function site() {
  const dir = mkdtempSync(join(tmpdir(), "kts-selinux-"));
  mkdirSync(join(dir, "etc/targeted/contexts"), { recursive: true });
  const places = { enforce: join(dir, "enforce"), contexts: join(dir, "contexts"), policies: join(dir, "etc") };
  const write = (path: string, text: string): void => writeFileSync(join(dir, path), text);
  return { places, write, close: () => rmSync(dir, { recursive: true }) };
}

const FILE = "system_u:object_r:container_file_t:s0";

test("without SELinux there are no labels", () => {
  const { places, close } = site();
  assert.equal(readSelinuxContexts(places), undefined);
  close();
});

test("the labels are those of the containers' own file, else of the policy", () => {
  const { places, write, close } = site();
  write("enforce", "0");
  assert.equal(readSelinuxContexts(places), undefined);
  write("etc/config", "# comment\nSELINUX=enforcing\nSELINUXTYPE=targeted\n");
  write("etc/targeted/contexts/lxc_contexts", `process = "system_u:system_r:container_t:s0"\n; no\nfile = "${FILE}"\n`);
  assert.deepEqual(readSelinuxContexts(places), { process: "system_u:system_r:container_t:s0", file: FILE });
  write("contexts", 'process = "a:b:c:s0"\nfile="d:e:f:s0"\n');
  assert.deepEqual(readSelinuxContexts(places), { process: "a:b:c:s0", file: "d:e:f:s0" });
  close();
});
