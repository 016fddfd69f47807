import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { configMap, secret } from "../../../test/support/objects.ts";
import { pod } from "../../../test/support/pods.ts";
import { POD_DIR, VolumeScene } from "../../../test/support/volumes.ts";
import type { KeyToPath, Pod, Volume, VolumeProjection } from "../../model/generated/types.ts";
import type { TokenSource, TrustBundleSource } from "../kind.ts";

const at = (plugin: string): string => `${POD_DIR}/volumes/kubernetes.io~${plugin}/v`;

/** Both kinds of objects have the same rules; only the words and the place differ. */
const kinds = [
  {
    word: "config",
    lower: "configmap",
    isTmpfs: false,
    put: configMap,
    volume: (more: object): Volume => ({ name: "v", configMap: { name: "o", ...more } }),
    plugin: "configmap",
  },
  {
    word: "secret",
    lower: "secret",
    isTmpfs: true,
    put: secret,
    volume: (more: object): Volume => ({ name: "v", secret: { secretName: "o", ...more } }),
    plugin: "secret",
  },
  {
    word: "config",
    lower: "configmap",
    isTmpfs: true,
    put: configMap,
    volume: ({ defaultMode, ...more }: { defaultMode?: number }): Volume => ({
      name: "v",
      projected: {
        ...(defaultMode !== undefined && { defaultMode }),
        sources: [{ configMap: { name: "o", ...more } }],
      },
    }),
    plugin: "projected",
  },
];

for (const { word, lower, isTmpfs, put, volume, plugin } of kinds) {
  describe(`a ${lower} in a ${plugin} volume`, () => {
    const scene = (more: object, data?: Record<string, string>): VolumeScene => {
      const made = new VolumeScene([volume(more)]);
      if (data !== undefined && lower === "configmap") made.objects.put(...configMap("o", data));
      if (data !== undefined && lower === "secret") made.objects.put(...secret("o", data));
      return made;
    };
    const item = (key: string, path: string, mode?: number): KeyToPath => ({
      key,
      path,
      ...(mode !== undefined && { mode }),
    });
    const cases: { name: string; given: object; data?: Record<string, string>; want: Record<string, string> }[] = [
      { name: "all keys are files", given: {}, data: { a: "1", "b.txt": "ü" }, want: { a: "1", "b.txt": "ü" } },
      { name: "no keys are no files", given: {}, data: {}, want: {} },
      {
        name: "items choose and rename",
        given: { items: [item("a", "x/y"), item("a", "z")] },
        data: { a: "1", b: "2" },
        want: { "x/y": "1", z: "1" },
      },
      { name: "an optional object that is missing is an empty volume", given: { optional: true }, want: {} },
      {
        name: "an optional key that is missing is left out",
        given: { optional: true, items: [item("a", "a"), item("gone", "b")] },
        data: { a: "1" },
        want: { a: "1" },
      },
    ];
    for (const { name, given, data, want } of cases) {
      test(name, async () => {
        const here = scene(given, data);
        await here.prepare();
        assert.deepEqual(here.machine.texts(at(plugin)), want);
        assert.equal(here.machine.mounts.has(at(plugin)), isTmpfs);
        assert.deepEqual(here.volumes.source(here.web, "v"), { kind: "path", path: at(plugin), readonly: true });
      });
    }

    const refused: [string, object, Record<string, string> | undefined, string][] = [
      ["a missing object", {}, undefined, `${lower} "o" not found`],
      ["a missing key", { items: [item("gone", "a")] }, { a: "1" }, `references non-existent ${word} key: gone`],
      ["a key with ..", {}, { "..bad": "1" }, 'path "..bad" must not begin with ".."'],
      ["a key with /", {}, { "/bad": "1" }, 'path "/bad" must be relative'],
      ["an item that leaves the volume", { items: [item("a", "x/../../y")] }, { a: "1" }, 'must not contain ".."'],
      ["a name that is too long", { items: [item("a", "x".repeat(256))] }, { a: "1" }, "has a name over 255 bytes"],
      [
        "a file where a directory is needed",
        { items: [item("a", "x"), item("a", "x/y")] },
        { a: "1" },
        '"x" is a file',
      ],
    ];
    for (const [name, given, data, why] of refused) {
      test(`${name} keeps the pod waiting, and nothing is written or mounted`, async () => {
        const here = scene(given, data);
        const detail = await here.refusal();
        assert.ok(detail.includes(why), detail);
        assert.deepEqual([here.machine.contents.size, here.machine.mounts.size], [0, 0]);
      });
    }

    test("modes: the file's own, the volume's, else 0644", async () => {
      const here = scene({ defaultMode: 0o440, items: [item("a", "own", 0o600), item("a", "default")] }, { a: "" });
      await here.prepare();
      const modes = [...(here.machine.contents.get(at(plugin)) ?? [])].map(([path, { mode }]) => [path, mode]);
      assert.deepEqual(modes, [
        ["own", 0o600],
        ["default", 0o440],
      ]);
      const plain = scene({}, { a: "" });
      await plain.prepare();
      assert.equal(plain.machine.contents.get(at(plugin))?.get("a")?.mode, 0o644);
    });

    test("an optional object that appears fills the volume, and one that goes empties it", async () => {
      const here = scene({ optional: true });
      await here.prepare();
      const [ref] = put("o", {});
      if (lower === "secret") here.objects.put(...secret("o", { a: "1" }));
      else here.objects.put(...configMap("o", { a: "1" }));
      await here.clock.advance(0);
      assert.deepEqual(here.machine.texts(at(plugin)), { a: "1" });
      here.objects.remove(ref);
      await here.clock.advance(0);
      assert.deepEqual(here.machine.texts(at(plugin)), {});
    });
  });
}

test("binary values of a ConfigMap are files with their bytes", async () => {
  const scene = new VolumeScene([{ name: "v", configMap: { name: "o" } }]);
  const [ref] = configMap("o", {});
  const binaryData = { raw: Buffer.from([0, 255, 10]).toString("base64") };
  scene.objects.put(ref, { metadata: { name: "o" }, data: { text: "t" }, binaryData });
  await scene.prepare();
  const files = scene.machine.contents.get(at("configmap"));
  assert.deepEqual([...(files?.get("raw")?.bytes ?? [])], [0, 255, 10]);
});

describe("downwardAPI", () => {
  test("fields and resources of the pod are files", async () => {
    const scene = new VolumeScene();
    const items = [
      { path: "name", fieldRef: { fieldPath: "metadata.name" } },
      { path: "labels", fieldRef: { fieldPath: "metadata.labels" }, mode: 0o400 },
      { path: "memory", resourceFieldRef: { containerName: "app", resource: "limits.memory", divisor: "1Mi" } },
      { path: "of/node", resourceFieldRef: { containerName: "app", resource: "limits.cpu" } },
    ];
    const limited = { resources: { limits: { memory: "64Mi" } } };
    const web = pod()
      .container("app", limited)
      .with({ volumes: [{ name: "v", downwardAPI: { items } }] })
      .build();
    await scene.prepare({ ...web, metadata: { ...web.metadata, labels: { a: "1", b: "2" } } });
    assert.deepEqual(scene.machine.texts(at("downward-api")), {
      name: "web",
      labels: 'a="1"\nb="2"',
      memory: "64",
      "of/node": "4",
    });
    assert.equal(scene.machine.contents.get(at("downward-api"))?.get("labels")?.mode, 0o400);
    assert.ok(scene.machine.mounts.has(at("downward-api")));
  });

  test("a container that the pod does not have keeps it waiting", async () => {
    const items = [{ path: "x", resourceFieldRef: { containerName: "gone", resource: "limits.cpu" } }];
    const scene = new VolumeScene([{ name: "v", downwardAPI: { items } }]);
    assert.match(await scene.refusal(), /"gone" names no container/);
  });
});

describe("projected", () => {
  const projected = (...sources: VolumeProjection[]): Volume => ({ name: "v", projected: { sources } });

  test("several sources are one directory; of two files with one path the later counts", async () => {
    const scene = new VolumeScene([
      projected(
        { configMap: { name: "o" } },
        { secret: { name: "s", items: [{ key: "k", path: "sub/k" }] } },
        { downwardAPI: { items: [{ path: "a", fieldRef: { fieldPath: "metadata.name" } }] } },
      ),
    ]);
    scene.objects.put(...configMap("o", { a: "1", b: "2" }));
    scene.objects.put(...secret("s", { k: "hidden" }));
    await scene.prepare();
    assert.deepEqual(scene.machine.texts(at("projected")), { a: "web", b: "2", "sub/k": "hidden" });
  });

  test("a change of any source is one of the volume", async () => {
    const scene = new VolumeScene([projected({ configMap: { name: "o" } }, { secret: { name: "s" } })]);
    scene.objects.put(...configMap("o", { a: "1" }));
    scene.objects.put(...secret("s", { k: "1" }));
    await scene.prepare();
    scene.objects.put(...secret("s", { k: "2" }));
    await scene.clock.advance(0);
    assert.deepEqual(scene.machine.texts(at("projected")), { a: "1", k: "2" });
  });

  const token = projected({ serviceAccountToken: { path: "token", audience: "vault", expirationSeconds: 600 } });

  test("a token is asked for with its audience and renewed when it is due, whatever fails in between", async () => {
    const asked: unknown[] = [];
    let fails = false;
    const tokens: TokenSource = {
      token: ({ pod: of, audience, expirationSeconds }) => {
        asked.push([of.metadata.name, audience, expirationSeconds]);
        if (fails) return Promise.reject(new Error("the server is away"));
        return Promise.resolve({
          token: `token-${asked.length}`,
          refreshAt: scene.clock.now().wall + 480_000,
          expiresAt: 10 ** 15,
        });
      },
    };
    const scene = new VolumeScene([token], { tokens });
    await scene.prepare();
    assert.deepEqual(asked, [["web", "vault", 600]]);
    await scene.clock.advance(479_999);
    assert.deepEqual(scene.machine.texts(at("projected")), { token: "token-1" });
    fails = true;
    await scene.clock.advance(1);
    assert.equal(asked.length, 2);
    assert.deepEqual(scene.machine.texts(at("projected")), { token: "token-1" });
    fails = false;
    await scene.clock.advance(500);
    assert.deepEqual(scene.machine.texts(at("projected")), { token: "token-3" });
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.equal(scene.clock.waiting, 0);
  });

  const owners: [string, Partial<Pod["spec"]>, { mode: number; uid?: number }][] = [
    ["anybody without a user that is said", {}, { mode: 0o644 }],
    ["the one user of all containers alone", { securityContext: { runAsUser: 7 } }, { mode: 0o600, uid: 7 }],
    ["the group, which the writer adds", { securityContext: { fsGroup: 9 } }, { mode: 0o600 }],
    [
      "anybody where containers have different users",
      { containers: [1, 2].map((user) => ({ name: `c${user}`, securityContext: { runAsUser: user } })) },
      { mode: 0o644 },
    ],
  ];
  for (const [name, spec, want] of owners) {
    test(`a token may be read by ${name}`, async () => {
      const tokens = { token: () => Promise.resolve({ token: "t", refreshAt: 10 ** 15, expiresAt: 10 ** 15 }) };
      const scene = new VolumeScene([token], { tokens });
      await scene.prepare({ ...scene.web, spec: { ...scene.web.spec, ...spec } });
      const { bytes: _bytes, ...file } = scene.machine.contents.get(at("projected"))?.get("token") ?? { bytes: "" };
      assert.deepEqual(file, want);
      assert.equal(scene.machine.groups.get(at("projected"))?.gid, spec.securityContext?.fsGroup);
    });
  }

  const pem = (name: string): string => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----`;
  const bundle = (more: object): Volume => projected({ clusterTrustBundle: { path: "ca.pem", name: "b", ...more } });
  const trusting = (found: readonly string[] | undefined): { trustBundles: TrustBundleSource } => ({
    trustBundles: { bundles: () => Promise.resolve(found), onChange: () => undefined },
  });

  test("trust bundles are each certificate once, in one order", async () => {
    const scene = new VolumeScene([bundle({})], trusting([`${pem("b")}\n${pem("a")}`, `# note\n${pem("b")}`]));
    await scene.prepare();
    assert.deepEqual(scene.machine.texts(at("projected")), { "ca.pem": `${pem("a")}\n${pem("b")}\n` });
  });

  test("a trust bundle that changes is written again, until the pod goes", async () => {
    let found = [pem("a")];
    const heard = new Set<() => void>();
    const trustBundles: TrustBundleSource = {
      bundles: () => Promise.resolve(found),
      onChange: (_selection, fn, { signal }) => {
        heard.add(fn);
        signal.addEventListener("abort", () => void heard.delete(fn), { once: true });
      },
    };
    const scene = new VolumeScene([bundle({})], { trustBundles });
    await scene.prepare();
    found = [pem("b")];
    for (const fn of heard) fn();
    await scene.clock.advance(0);
    assert.deepEqual(scene.machine.texts(at("projected")), { "ca.pem": `${pem("b")}\n` });
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.equal(heard.size, 0);
  });

  test("a missing trust bundle keeps the pod waiting, unless it is optional", async () => {
    assert.match(
      await new VolumeScene([bundle({})], trusting(undefined)).refusal(),
      /clustertrustbundle "b" not found/,
    );
    const scene = new VolumeScene([bundle({ optional: true })], trusting(undefined));
    await scene.prepare();
    assert.deepEqual(scene.machine.texts(at("projected")), { "ca.pem": "" });
  });

  test("without an API server there are neither tokens nor bundles, and the pod says so", async () => {
    assert.match(await new VolumeScene([token]).refusal(), /token: an API server is required/);
    assert.match(await new VolumeScene([bundle({})]).refusal(), /bundle: an API server is required/);
  });
});
