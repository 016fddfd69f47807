import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { manyListeners } from "../../lib/abort.ts";
import { loadProviders, type ProviderFiles } from "./load-providers.ts";

const never = { signal: manyListeners().signal };
const provider = (name: string): object => ({
  name,
  apiVersion: "credentialprovider.kubelet.k8s.io/v1",
  matchImages: ["example.com"],
  defaultCacheDuration: "1m",
});
const text = (...names: readonly string[]): string =>
  JSON.stringify({
    apiVersion: "kubelet.config.k8s.io/v1",
    kind: "CredentialProviderConfig",
    providers: names.map(provider),
  });

function files(content: Readonly<Record<string, string>>): ProviderFiles {
  const paths = Object.keys(content);
  const isDirectory = (path: string): boolean => paths.some((one) => one.startsWith(`${path}/`));
  return {
    stat: async (path) => {
      if (isDirectory(path)) return { kind: "directory", isExecutable: true };
      return paths.includes(path) ? { kind: "file", isExecutable: content[path] !== "data" } : undefined;
    },
    list: async (path) => [...new Set(paths.flatMap((one) => one.split(`${path}/`)[1]?.split("/")[0] ?? []))],
    read: async (path) => content[path] ?? "",
    parse: async (of) => JSON.parse(of),
  };
}

const load = (content: Readonly<Record<string, string>>, config = "/etc/p") =>
  loadProviders(
    files({ "/bin/one": "", "/bin/two": "", "/bin/three": "", ...content }),
    {
      config,
      binDir: "/bin",
      allowsTokens: true,
    },
    never,
  );

test("files of a directory are merged in the order of their names; others and directories are skipped", async () => {
  const content = {
    "/etc/p/20.yaml": text("two"),
    "/etc/p/10.json": text("one"),
    "/etc/p/30.yml": text("three"),
    "/etc/p/README": "x",
    "/etc/p/more.yaml/40.yaml": "x",
  };
  const { providers, hash } = await load(content);
  assert.deepEqual(
    providers.map(({ name }) => name),
    ["one", "two", "three"],
  );
  const expected = createHash("sha256");
  for (const one of ["one", "two", "three"]) {
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(text(one).length));
    expected.update(length).update(text(one));
  }
  assert.equal(hash, `sha256:${expected.digest("hex")}`);
});

test("a file of a directory may have no provider, if another one has", async () => {
  const { providers } = await load({ "/etc/p/10.json": text(), "/etc/p/20.json": text("two") });
  assert.deepEqual(
    providers.map(({ name }) => name),
    ["two"],
  );
});

test("a file alone is read whatever its name", async () => {
  assert.equal((await load({ "/etc/config": text("one") }, "/etc/config")).providers.length, 1);
});

const wrong: readonly { name: string; content: Readonly<Record<string, string>>; says: RegExp }[] = [
  { name: "no file", content: {}, says: /--image-credential-provider-config: "\/etc\/p" does not exist/ },
  {
    name: "an empty directory",
    content: { "/etc/p/README": "" },
    says: /has no file that ends in \.json, \.yaml, \.yml/,
  },
  {
    name: "no provider in any file",
    content: { "/etc/p/a.json": text(), "/etc/p/b.json": text() },
    says: /: \/etc\/p: providers: must not be empty; configure at least one provider$/,
  },
  { name: "no YAML", content: { "/etc/p/a.json": "{" }, says: /\/etc\/p\/a\.json: / },
  { name: "a problem", content: { "/etc/p/a.json": text("../x") }, says: /a\.json: providers\[0\]\.name/ },
  {
    name: "one name in two files",
    content: { "/etc/p/a.json": text("one"), "/etc/p/b.json": text("one") },
    says: /is the name of two providers \("one"\)/,
  },
  {
    name: "a file that is not executable",
    content: { "/etc/p/a.json": text("one"), "/bin/one": "data" },
    says: /provider "one": \/bin\/one is not executable; set its mode/,
  },
  { name: "no executable", content: { "/etc/p/a.json": text("four") }, says: /executable \/bin\/four does not exist/ },
];
for (const { name, content, says } of wrong) {
  test(`refused: ${name}`, () => assert.rejects(load(content), { message: says, code: "Invalid" }));
}

test("the bin directory must exist, and a bin directory alone is not enough", async () => {
  const of = (config: string, binDir: string) =>
    loadProviders(files({ "/etc/p": text("one"), "/bin/one": "" }), { config, binDir, allowsTokens: true }, never);
  await assert.rejects(of("/etc/p", "/opt"), /--image-credential-provider-bin-dir: "\/opt" is not a directory/);
  await assert.rejects(of("", "/bin"), /--image-credential-provider-config: is required/);
});
