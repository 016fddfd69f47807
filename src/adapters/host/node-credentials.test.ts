import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { credentialDirectories, NodeCredentials } from "./node-credentials.ts";

let base = "";
let credentials: NodeCredentials;
before(async () => {
  base = await mkdtemp(join(tmpdir(), "node-credentials-"));
});
after(() => rm(base, { recursive: true }));

let round = 0;
beforeEach(() => {
  round++;
  const at = (name: string): string => join(base, String(round), name);
  credentials = new NodeCredentials({ root: at("root"), working: at("working"), home: at("home"), top: at("top") });
});

async function write(path: string, content: unknown): Promise<void> {
  const file = join(base, String(round), path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
}

const entry = (username: string): object => ({ "r.example.com": { username, password: "p" } });
const users = async (image = "r.example.com/app:1"): Promise<readonly (string | undefined)[]> =>
  (await credentials.forImage(image)).map(({ auth }) => auth.username);

test("a node without credential files has no credentials", async () => {
  assert.deepEqual(await users(), []);
});

const places = [
  { file: "root/config.json", content: { auths: entry("u") } },
  { file: "working/config.json", content: { auths: entry("u") } },
  { file: "home/.docker/config.json", content: { auths: entry("u") } },
  { file: "top/.docker/config.json", content: { auths: entry("u") } },
  { file: "root/.dockercfg", content: entry("u") },
  { file: "working/.dockercfg", content: entry("u") },
  { file: "home/.dockercfg", content: entry("u") },
  { file: "top/.dockercfg", content: entry("u") },
];
for (const { file, content } of places) {
  test(`credentials of the node are found in ${file}`, async () => {
    await write(file, content);
    assert.deepEqual(await users(), ["u"]);
    assert.deepEqual(await users("other.example.com/app:1"), []);
  });
}

test("the first valid config.json is used alone, a malformed one is skipped, .dockercfg is the fallback", async () => {
  await write("root/.dockercfg", entry("legacy"));
  assert.deepEqual(await users(), ["legacy"]);
  await write("top/.docker/config.json", { auths: entry("top") });
  assert.deepEqual(await users(), ["top"]);
  await write("home/.docker/config.json", "{");
  assert.deepEqual(await users(), ["top"]);
  await write("root/config.json", { auths: entry("root") });
  assert.deepEqual(await users(), ["root"]);
});

test("a changed file is used by the next pull", async () => {
  await write("root/config.json", { auths: entry("before") });
  assert.deepEqual(await users(), ["before"]);
  await write("root/config.json", { auths: entry("after") });
  assert.deepEqual(await users(), ["after"]);
});

test("without HOME no home directory is looked up", () => {
  const { HOME: before } = process.env;
  try {
    delete process.env["HOME"];
    assert.equal(credentialDirectories("/r").home, "");
    process.env["HOME"] = "/h";
    assert.equal(credentialDirectories("/r").home, "/h");
  } finally {
    if (before === undefined) delete process.env["HOME"];
    else process.env["HOME"] = before;
  }
});
