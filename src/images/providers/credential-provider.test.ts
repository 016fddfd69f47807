import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { Pod, ServiceAccount } from "../../model/generated/types.ts";
import { CredentialProvider } from "./credential-provider.ts";
import type { ProviderRequest, ProviderResponse } from "./exec-protocol.ts";
import type { ProviderConfig, TokenAttributes } from "./provider-config.ts";

const never = { signal: manyListeners().signal };
const podOf = (uid: string, serviceAccountName = "robot"): Pod => ({
  metadata: { name: `pod-${uid}`, namespace: "ns", uid },
  spec: { containers: [], serviceAccountName },
});
const robot: ServiceAccount = {
  metadata: { name: "robot", namespace: "ns", uid: "sa-1", annotations: { role: "puller", other: "x" } },
};
const attributes: TokenAttributes = {
  audience: "registry",
  cacheType: "ServiceAccount",
  isRequired: true,
  requiredAnnotations: ["role"],
  optionalAnnotations: ["zone"],
};

/** A plugin that answers as told, and counts how often it ran. */
class Site {
  readonly clock = new FakeClock();
  readonly requests: ProviderRequest[] = [];
  readonly needs: unknown[] = [];
  account: ServiceAccount | undefined = robot;
  response: ProviderResponse = {
    cacheKeyType: "Image",
    cacheMs: undefined,
    entries: [{ location: "r.io", auth: { username: "u", password: "p" } }],
  };
  readonly provider: CredentialProvider;

  constructor(config: Partial<ProviderConfig> = {}) {
    this.provider = new CredentialProvider(
      {
        clock: this.clock,
        run: async (_config, request) => {
          this.requests.push(request);
          await Promise.resolve();
          return this.response;
        },
        accounts: {
          account: async () => this.account,
          token: async (need) => {
            this.needs.push({ ...need, pod: need.pod.metadata.uid });
            return { token: `token-of-${need.pod.metadata.uid}` };
          },
        },
      },
      {
        name: "plugin",
        apiVersion: "v1",
        matchImages: ["r.io", "other.io"],
        defaultCacheMs: 60_000,
        args: [],
        env: {},
        ...config,
      },
    );
  }

  of(repository: string, pod = podOf("1")) {
    return this.provider.entries(repository, pod, never);
  }
}

describe("a response is cached", () => {
  const cases = [
    { by: "Image", runs: ["r.io/a", "r.io/b", "other.io/a"] },
    { by: "Registry", runs: ["r.io/a", "other.io/a"] },
    { by: "Global", runs: ["r.io/a"] },
  ] as const;
  for (const { by, runs } of cases) {
    test(`by ${by}`, async () => {
      const site = new Site();
      site.response = { ...site.response, cacheKeyType: by };
      for (const repository of ["r.io/a", "r.io/a", "r.io/b", "other.io/a"]) await site.of(repository);
      assert.deepEqual(
        site.requests.map(({ image }) => image),
        runs,
      );
    });
  }

  const durations = [
    { name: "for the default duration", cacheMs: undefined, after: 60_001, runs: 2 },
    { name: "for the default duration and no shorter", cacheMs: undefined, after: 60_000, runs: 1 },
    { name: "for its own duration", cacheMs: 5_000, after: 5_001, runs: 2 },
    { name: "not at all", cacheMs: 0, after: 0, runs: 2 },
  ];
  for (const { name, cacheMs, after, runs } of durations) {
    test(name, async () => {
      const site = new Site();
      site.response = { ...site.response, cacheMs };
      await site.of("r.io/a");
      await site.clock.advance(after);
      await site.of("r.io/a");
      assert.equal(site.requests.length, runs);
    });
  }
});

test("the cache is bounded by its size; the oldest responses make room", async () => {
  const site = new Site();
  const password = "x".repeat(1024 * 1024);
  site.response = { ...site.response, entries: [{ location: "r.io", auth: { password } }] };
  for (const name of ["a", "b", "c", "d", "a", "d"]) await site.of(`r.io/${name}`);
  assert.deepEqual(
    site.requests.map(({ image }) => image),
    ["r.io/a", "r.io/b", "r.io/c", "r.io/d", "r.io/a"],
  );
});

test("images that the plugin does not match never reach it", async () => {
  const site = new Site();
  assert.deepEqual(await site.of("example.com/a"), []);
  assert.equal(site.requests.length, 0);
});

test("equal requests at a time are one run; a caller that leaves does not end it for the others", async () => {
  const site = new Site();
  site.response = { ...site.response, cacheMs: 0 };
  const left = manyListeners();
  const first = site.provider.entries("r.io/a", podOf("1"), left);
  const second = site.of("r.io/a");
  left.abort(new Error("left"));
  await assert.rejects(first, /left/);
  assert.equal((await second).length, 1);
  assert.equal(site.requests.length, 1);
});

describe("service account tokens", () => {
  test("the plugin gets the token of the pod and the annotations that it asked for", async () => {
    const site = new Site({ token: attributes });
    const entries = await site.of("r.io/a");
    assert.deepEqual(site.requests, [
      {
        apiVersion: "v1",
        image: "r.io/a",
        serviceAccountToken: "token-of-1",
        serviceAccountAnnotations: { role: "puller" },
      },
    ]);
    assert.deepEqual(site.needs, [{ pod: "1", audience: "registry", expirationSeconds: 3600, accountUid: "sa-1" }]);
    assert.deepEqual(
      entries.map(({ owner }) => owner),
      [{ kind: "ServiceAccount", uid: "sa-1", namespace: "ns", name: "robot" }],
    );
  });

  const cases = [
    { cacheType: "ServiceAccount", runs: 1 },
    { cacheType: "Token", runs: 2 },
  ] as const;
  for (const { cacheType, runs } of cases) {
    test(`cacheType ${cacheType}: two pods of one service account are ${runs} runs`, async () => {
      const site = new Site({ token: { ...attributes, cacheType } });
      await site.of("r.io/a", podOf("1"));
      await site.of("r.io/a", podOf("2"));
      assert.equal(site.requests.length, runs);
    });
  }

  test("a service account that was made anew, or annotated otherwise, has no part in the cache", async () => {
    const site = new Site({ token: attributes });
    await site.of("r.io/a");
    site.account = { metadata: { ...robot.metadata, uid: "sa-2" } };
    await site.of("r.io/a");
    site.account = { metadata: { ...robot.metadata, annotations: { role: "other" } } };
    await site.of("r.io/a");
    assert.equal(site.requests.length, 3);
  });

  test("without a required annotation the plugin is left out", async () => {
    const site = new Site({ token: attributes });
    site.account = { metadata: { ...robot.metadata, annotations: {} } };
    assert.deepEqual(await site.of("r.io/a"), []);
    assert.equal(site.requests.length, 0);
  });

  test("a pod without a service account is left out if one is required, and pulls for everybody if not", async () => {
    const required = new Site({ token: attributes });
    assert.deepEqual(await required.of("r.io/a", podOf("1", "")), []);
    const optional = new Site({ token: { ...attributes, isRequired: false, requiredAnnotations: [] } });
    const [entry] = await optional.of("r.io/a", podOf("1", ""));
    assert.equal(entry?.owner, undefined);
    assert.equal(optional.requests[0]?.serviceAccountToken, undefined);
  });

  test("a token that comes back as password must be cached by token", async () => {
    for (const cacheType of ["ServiceAccount", "Token"] as const) {
      const site = new Site({ token: { ...attributes, cacheType } });
      site.response = { ...site.response, entries: [{ location: "r.io", auth: { password: "token-of-1" } }] };
      const entries = site.of("r.io/a");
      if (cacheType === "Token") assert.equal((await entries).length, 1);
      else
        await assert.rejects(entries, (error: Error) => /Token/.test(error.message) && !/token-of/.test(error.message));
    }
  });

  test("a missing service account is an error", async () => {
    const site = new Site({ token: attributes });
    site.account = undefined;
    await assert.rejects(site.of("r.io/a"), /service account "robot" not found/);
  });
});
