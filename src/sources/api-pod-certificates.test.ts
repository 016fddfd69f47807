import assert from "node:assert/strict";
import { test } from "node:test";
import { countCpu } from "../../test/support/cpu-time.ts";
import { pod } from "../../test/support/pods.ts";
import type { KubeApi, PodCertificateRequest, WatchEvent } from "../adapters/kubeapi/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { ApiPodCertificates, type CertificateNeed } from "./api-pod-certificates.ts";
import { cleanChain } from "./pod-certificate.ts";

const HOUR = 3_600_000;
const need: CertificateNeed = {
  pod: pod("web").container("app").build(),
  volume: "tls",
  index: 1,
  source: { signerName: "example.com/signer", keyType: "ED25519", userAnnotations: { "example.com/a": "b" } },
};
const CHAIN = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";

/** A server with requests that a test decides about. */
class Bench {
  readonly clock = new FakeClock();
  readonly events: string[] = [];
  readonly requests: PodCertificateRequest[] = [];
  readonly selectors: (string | undefined)[] = [];
  private readonly watchers: ((event: WatchEvent<PodCertificateRequest>) => void)[] = [];
  news = 0;
  isEnabled = true;
  creates: "ok" | "fail" = "ok";
  /** Keys that are being made now, and at most. */
  keys = { now: 0, most: 0 };
  readonly closing = new AbortController();
  readonly certificates: ApiPodCertificates;

  constructor() {
    // reason: the calls that are made, with the objects that are asked for
    const api = {
      get: () => Promise.resolve({ metadata: { uid: "account-uid" } }),
      create: (_resource: unknown, { object }: { object: PodCertificateRequest }) => this.create(object),
      list: (_resource: unknown, query: { fieldSelector?: string }) => {
        this.selectors.push(query.fieldSelector);
        return Promise.resolve({ items: this.requests.slice(-1), resourceVersion: "1", continueToken: "" });
      },
      watch: (_resource: unknown, _query: unknown, { signal }: { signal: AbortSignal }) =>
        Promise.resolve(this.watch(signal)),
    } as unknown as KubeApi;
    this.certificates = new ApiPodCertificates(
      {
        api,
        clock: this.clock,
        random: () => 0.5,
        isEnabled: () => this.isEnabled,
        node: () => ({ metadata: { name: "node-1", uid: "node-uid" } }),
        makeKey: async () => {
          this.keys.most = Math.max(this.keys.most, ++this.keys.now);
          await new Promise((resolve) => setImmediate(resolve));
          this.keys.now--;
          return { keyPem: `key-${this.requests.length}\n`, request: "REVS" };
        },
        event: (_pod, reason, message) => void this.events.push(`${reason}: ${message}`),
      },
      new AbortController().signal,
    );
  }

  async follow(): Promise<void> {
    this.certificates.onChange(need, () => this.news++, this.closing);
    await this.clock.advance(0);
  }

  /** The signer decides about the newest request. */
  async decide(status: PodCertificateRequest["status"]): Promise<void> {
    const metadata = { ...this.newest.metadata, resourceVersion: "2" };
    const object = { ...this.newest, metadata, ...(status && { status }) };
    for (const send of this.watchers.splice(0)) send({ type: "MODIFIED", object, resourceVersion: "2" });
    await this.clock.advance(0);
  }

  async decideDeleted(object: PodCertificateRequest): Promise<void> {
    const deleted = { ...object, metadata: { ...object.metadata, resourceVersion: "2" } };
    for (const send of this.watchers.splice(0)) send({ type: "DELETED", object: deleted, resourceVersion: "2" });
    await this.clock.advance(0);
  }

  issue(afterMs = HOUR / 2): Promise<void> {
    const at = (ms: number): string => new Date(this.clock.now().wall + ms).toISOString();
    return this.decide({
      conditions: [{ type: "Issued" }],
      certificateChain: CHAIN,
      beginRefreshAt: at(afterMs),
      notAfter: at(HOUR),
    });
  }

  get newest(): PodCertificateRequest {
    const found = this.requests.at(-1);
    assert.ok(found);
    return found;
  }

  private create(object: PodCertificateRequest): Promise<PodCertificateRequest> {
    if (this.creates === "fail") return Promise.reject(new Error("forbidden"));
    const name = `req-${this.requests.length}`;
    this.requests.push({ ...object, metadata: { ...object.metadata, name, uid: name, resourceVersion: "1" } });
    return Promise.resolve(this.newest);
  }

  private async *watch(signal: AbortSignal): AsyncGenerator<WatchEvent<PodCertificateRequest>> {
    while (!signal.aborted) {
      const event = await new Promise<WatchEvent<PodCertificateRequest> | undefined>((resolve) => {
        this.watchers.push(resolve);
        signal.addEventListener("abort", () => resolve(undefined), { once: true });
      });
      if (event !== undefined) yield event;
    }
  }
}

test("a certificate is requested for pod, account and node, and is there when the signer issued it", async () => {
  const bench = new Bench();
  await bench.follow();
  assert.throws(() => bench.certificates.credential(need), /credential bundle is not issued yet/);
  assert.deepEqual(bench.newest.spec, {
    signerName: "example.com/signer",
    podName: "web",
    podUID: "uid-of-web",
    serviceAccountName: "default",
    serviceAccountUID: "account-uid",
    nodeName: "node-1",
    nodeUID: "node-uid",
    stubPKCS10Request: "REVS",
    unverifiedUserAnnotations: { "example.com/a": "b" },
  });
  assert.deepEqual(bench.selectors, ["metadata.name=req-0,spec.nodeName=node-1"]);
  await bench.issue();
  assert.equal(bench.news, 1);
  const { keyPem, chainPem } = bench.certificates.credential(need);
  assert.deepEqual([keyPem, chainPem], ["key-0\n", CHAIN]);
  assert.deepEqual(bench.certificates.states(), [[["example.com/signer", "fresh"], 1]]);
});

test("it is refreshed when the signer wants it, with some jitter; the old one stays until the new one is issued", async () => {
  const bench = new Bench();
  await bench.follow();
  await bench.issue();
  await bench.clock.advance(HOUR / 2 + 150_000 - 1);
  assert.equal(bench.requests.length, 1);
  await bench.clock.advance(1);
  assert.equal(bench.requests.length, 2);
  assert.equal(bench.certificates.credential(need).keyPem, "key-0\n");
  await bench.issue();
  assert.equal(bench.certificates.credential(need).keyPem, "key-1\n");
  assert.equal(bench.news, 2);
});

test("one that is not refreshed in time is reported as overdue and as expired, once", async () => {
  const bench = new Bench();
  await bench.follow();
  await bench.issue();
  await bench.clock.advance(HOUR - 1);
  assert.deepEqual(bench.certificates.states()[0]?.[0], ["example.com/signer", "overdue_for_refresh"]);
  await bench.clock.advance(HOUR);
  assert.deepEqual(bench.events, [
    "CertificateOverdueForRefresh: PodCertificate refresh overdue",
    "CertificateExpired: PodCertificate expired",
  ]);
});

test("a request that is denied or failed is not repeated, and its reason is told", async () => {
  const bench = new Bench();
  await bench.follow();
  await bench.decide({ conditions: [{ type: "Denied", reason: "UnsupportedKeyType", message: "no" }] });
  assert.throws(
    () => bench.certificates.credential(need),
    /permanently denied: reason="UnsupportedKeyType" message="no"/,
  );
  assert.deepEqual(bench.events, [
    'Denied: PodCertificateRequest default/req-0 was denied, reason="UnsupportedKeyType", message="no"',
  ]);
  await bench.clock.advance(24 * HOUR);
  assert.equal(bench.requests.length, 1);
});

test("a request that cannot be made is tried again, and the volume says why it waits", async () => {
  const bench = new Bench();
  bench.creates = "fail";
  await bench.follow();
  assert.throws(() => bench.certificates.credential(need), /not issued yet: forbidden/);
  bench.creates = "ok";
  await bench.clock.advance(2000);
  assert.equal(bench.requests.length, 1);
});

test("a request that somebody deleted is made again", async () => {
  const bench = new Bench();
  await bench.follow();
  const [first] = bench.requests.splice(0);
  assert.ok(first);
  await bench.decideDeleted(first);
  await bench.clock.advance(2000);
  assert.equal(bench.requests.length, 1);
});

test("nothing is left when the volume is gone, and nothing is requested while the gate is off", async () => {
  const bench = new Bench();
  await bench.follow();
  await bench.issue();
  bench.closing.abort();
  await bench.clock.advance(HOUR * 2);
  assert.deepEqual([bench.requests.length, bench.clock.waiting, bench.events.length], [1, 0, 0]);
  const off = new Bench();
  off.isEnabled = false;
  await off.follow();
  assert.equal(off.requests.length, 0);
  assert.throws(() => off.certificates.credential(need), /the feature gate PodCertificateRequest is off/);
});

test("of a chain only the certificates are kept, in their form", () => {
  const dirty = `words\n-----BEGIN CERTIFICATE-----\nProc-Type: x\n\n  ${"A".repeat(70)}\n-----END CERTIFICATE-----\nmore`;
  const clean = `-----BEGIN CERTIFICATE-----\n${"A".repeat(64)}\n${"A".repeat(6)}\n-----END CERTIFICATE-----\n`;
  assert.equal(cleanChain(dirty), clean);
  assert.equal(cleanChain("nothing"), "");
});

test("a chain with many certificates that begin and never end does not block the agent", () => {
  const cpuMs = countCpu();
  assert.equal(cleanChain(CHAIN + "-----BEGIN CERTIFICATE-----".repeat(60_000)), CHAIN);
  // A millisecond; it was 40 s.
  assert.ok(cpuMs() < 2000);
});

test("keys are made one at a time, however many certificates pods want", async () => {
  const bench = new Bench();
  for (let index = 0; index < 5; index++)
    bench.certificates.onChange({ ...need, index }, () => undefined, bench.closing);
  await bench.clock.advance(0);
  assert.deepEqual([bench.requests.length, bench.keys.most], [5, 1]);
});

test("pods take turns for keys: one that wants many delays another by one key", async () => {
  const bench = new Bench();
  const other: CertificateNeed = { ...need, pod: pod("other").container("app").build() };
  const follow = (one: CertificateNeed, index: number): void =>
    bench.certificates.onChange({ ...one, index }, () => undefined, bench.closing);
  const order = (): string[] => bench.requests.splice(0).map(({ spec }) => spec.podName);
  for (let index = 0; index < 5; index++) follow(need, index);
  for (let index = 0; index < 2; index++) follow(other, index);
  await bench.clock.advance(0);
  assert.deepEqual(order(), ["web", "other", "web", "other", "web", "web", "web"]);
  bench.closing.abort();
  assert.equal(bench.keys.most, 1);
});

test("a signer that does not say when to refresh is asked again after a minute, not at once", async () => {
  const bench = new Bench();
  await bench.follow();
  await bench.decide({ conditions: [{ type: "Issued" }], certificateChain: CHAIN });
  await bench.clock.advance(59_999);
  assert.equal(bench.requests.length, 1);
  await bench.clock.advance(1);
  assert.equal(bench.requests.length, 2);
});
