import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiError, type ObjectList, type Resource, type TrustBundle } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { ApiTrustBundles } from "./api-trust-bundles.ts";

type Event = { type: "ADDED" | "MODIFIED" | "DELETED"; object: TrustBundle; resourceVersion: string };

/** A server of trust bundles: which versions of the API it has, who lists and watches, and what watches are told. */
class Site {
  readonly clock = new FakeClock();
  readonly stop = manyListeners();
  readonly listed: string[] = [];
  readonly bundles = new Map<string, TrustBundle>();
  served = ["v1beta1"];
  fault: ApiError | undefined;
  watches = 0;
  private version = 10;
  private readonly told = new Set<(event: Event) => void>();
  readonly source = new ApiTrustBundles(
    // Speaks of trust bundles only.
    { api: this as never, clock: this.clock, log: silent },
    this.stop.signal,
  );

  put(name: string, spec: Partial<TrustBundle["spec"]> = {}, labels: Record<string, string> = {}): void {
    const resourceVersion = String(++this.version);
    const object = {
      metadata: { name, uid: `u-${name}`, resourceVersion, labels },
      spec: { trustBundle: name, ...spec },
    };
    const type = this.bundles.has(name) ? "MODIFIED" : "ADDED";
    this.bundles.set(name, object);
    for (const tell of this.told) tell({ type, object, resourceVersion });
  }

  remove(name: string): void {
    const known = this.bundles.get(name);
    assert.ok(known);
    this.bundles.delete(name);
    const resourceVersion = String(++this.version);
    for (const tell of this.told) tell({ type: "DELETED", object: known, resourceVersion });
  }

  async list(resource: Resource<TrustBundle>): Promise<ObjectList<TrustBundle>> {
    this.listed.push(resource.version);
    if (this.fault !== undefined) throw this.fault;
    if (!this.served.includes(resource.version)) throw new ApiError("NotFound", "no such resource");
    return { items: [...this.bundles.values()], resourceVersion: String(this.version), continueToken: "" };
  }

  async watch(_resource: unknown, _query: unknown, { signal }: { signal: AbortSignal }): Promise<AsyncIterable<Event>> {
    const pending: Event[] = [];
    let more: () => void = () => undefined;
    const tell = (event: Event): void => {
      pending.push(event);
      more();
    };
    this.told.add(tell);
    this.watches++;
    signal.addEventListener(
      "abort",
      () => {
        this.told.delete(tell);
        this.watches--;
        more();
      },
      { once: true },
    );
    async function* events(): AsyncGenerator<Event> {
      while (!signal.aborted) {
        const next = pending.shift();
        if (next !== undefined) yield next;
        else
          await new Promise<void>((resolve) => {
            more = resolve;
          });
      }
    }
    return events();
  }

  /** Listens as a volume does; the answer counts the calls. */
  listen(selection: Parameters<ApiTrustBundles["onChange"]>[0]): { calls: number; end(): void } {
    const ended = manyListeners();
    const heard = { calls: 0, end: () => ended.abort() };
    this.source.onChange(selection, () => heard.calls++, ended);
    return heard;
  }
}

const named = (name: string): { name: string; path: string } => ({ name, path: "ca.pem" });

describe("which bundles are meant", () => {
  const rows: [string, object, string[] | undefined][] = [
    ["one by its name", { name: "a" }, ["a"]],
    ["a name that is not there", { name: "z" }, undefined],
    ["a signer without a selector means nothing", { signerName: "s/1" }, undefined],
    ["a signer with an empty selector means all of it", { signerName: "s/1", labelSelector: {} }, ["b", "c"]],
    ["a signer and labels", { signerName: "s/1", labelSelector: { matchLabels: { live: "yes" } } }, ["c"]],
    ["another signer", { signerName: "s/2", labelSelector: {} }, undefined],
  ];
  for (const [name, selection, expected] of rows) {
    test(name, async () => {
      const site = new Site();
      site.put("a");
      site.put("b", { signerName: "s/1" });
      site.put("c", { signerName: "s/1" }, { live: "yes" });
      assert.deepEqual(await site.source.bundles({ path: "x", ...selection }, site.stop), expected);
      site.stop.abort();
    });
  }
});

describe("following", () => {
  test("nobody listens: nothing is asked; many listen: one watch; the last one ends it", async () => {
    const site = new Site();
    await site.clock.advance(60_000);
    assert.deepEqual([site.listed.length, site.watches], [0, 0]);
    const [first, second] = [site.listen(named("a")), site.listen(named("b"))];
    await site.source.bundles(named("a"), site.stop);
    await site.clock.advance(0);
    assert.deepEqual([site.listed.length, site.watches], [1, 1]);
    first.end();
    await site.clock.advance(0);
    assert.equal(site.watches, 1);
    second.end();
    await site.clock.advance(0);
    assert.equal(site.watches, 0);
  });

  test("only who means the changed bundle is told, and then reads the new text", async () => {
    const site = new Site();
    site.put("a");
    const [a, b] = [site.listen(named("a")), site.listen(named("b"))];
    await site.source.bundles(named("a"), site.stop);
    await site.clock.advance(0);
    [a.calls, b.calls] = [0, 0];
    site.put("a", { trustBundle: "new" });
    await site.clock.advance(0);
    assert.deepEqual([a.calls, b.calls], [1, 0]);
    assert.deepEqual(await site.source.bundles(named("a"), site.stop), ["new"]);
    site.remove("a");
    await site.clock.advance(0);
    assert.deepEqual([a.calls, b.calls], [2, 0]);
    assert.equal(await site.source.bundles(named("a"), site.stop), undefined);
    site.stop.abort();
  });

  test("a bundle that loses its label is told to whom it was meant for", async () => {
    const site = new Site();
    site.put("a", { signerName: "s/1" }, { live: "yes" });
    const selection = { path: "x", signerName: "s/1", labelSelector: { matchLabels: { live: "yes" } } };
    const heard = site.listen(selection);
    await site.source.bundles(selection, site.stop);
    await site.clock.advance(0);
    heard.calls = 0;
    site.put("a", { signerName: "s/1" }, {});
    await site.clock.advance(0);
    assert.equal(heard.calls, 1);
    site.stop.abort();
  });
});

describe("servers that cannot tell", () => {
  test("an older version of the API is found, and remembered", async () => {
    const site = new Site();
    site.served = ["v1alpha1"];
    site.put("a");
    const heard = site.listen(named("a"));
    await site.clock.advance(1000);
    assert.deepEqual(await site.source.bundles(named("a"), site.stop), ["a"]);
    assert.deepEqual(site.listed, ["v1beta1", "v1alpha1"]);
    heard.end();
    await site.source.bundles(named("a"), site.stop);
    assert.deepEqual(site.listed, ["v1beta1", "v1alpha1", "v1alpha1"]);
    site.stop.abort();
  });

  test("a server without them is said, and asked again later", async () => {
    const site = new Site();
    site.served = [];
    site.listen(named("a"));
    const reading = assert.rejects(
      site.source.bundles(named("a"), site.stop),
      /list ClusterTrustBundles: the API server does not serve them/,
    );
    await site.clock.advance(3000);
    await reading;
    assert.deepEqual(site.listed, ["v1beta1", "v1alpha1"]);
    site.served = ["v1beta1"];
    site.put("a");
    await site.clock.advance(30_000);
    assert.deepEqual(await site.source.bundles(named("a"), site.stop), ["a"]);
    site.stop.abort();
  });

  test("a server that is away says why after a moment; its answer counts as soon as it comes", async () => {
    const site = new Site();
    site.fault = new ApiError("Unavailable", "connection refused");
    site.put("a");
    const heard = site.listen(named("a"));
    const reading = assert.rejects(site.source.bundles(named("a"), site.stop), /connection refused/);
    await site.clock.advance(3000);
    await reading;
    site.fault = undefined;
    await site.clock.advance(15_000);
    assert.equal(heard.calls, 1);
    assert.deepEqual(await site.source.bundles(named("a"), site.stop), ["a"]);
    site.stop.abort();
  });

  test("whoever gives up is left alone", async () => {
    const site = new Site();
    site.fault = new ApiError("Unavailable", "away");
    const mine = manyListeners();
    const reading = assert.rejects(site.source.bundles(named("a"), mine), /given up/);
    mine.abort(new Error("given up"));
    await reading;
    await site.clock.advance(0);
    const asked = site.listed.length;
    await site.clock.advance(60_000);
    assert.equal(site.listed.length, asked);
  });
});
