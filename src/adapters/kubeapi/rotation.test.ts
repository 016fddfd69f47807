import assert from "node:assert/strict";
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { clientConfig, testClients } from "../../../test/contract/kubeapi-clients.ts";
import { FakeApiServer } from "../../../test/contract/kubeapi-fake-server.ts";
import { until } from "../../../test/contract/kubeapi-suite.ts";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import { bootstrap, clientCertificate, isKubeconfigUsable } from "./bootstrap.ts";
import { CertStore, CertStoreError } from "./cert-store.ts";
import { certificate, newKey } from "./certificates.ts";
import { type CertificateSpec, requestCertificate, SigningError, stableName } from "./csr.ts";
import { CertificateRotation, rotationTime, whyReplace } from "./rotation.ts";

const HOUR = 3_600_000;
const never = { signal: new AbortController().signal };
const client = clientCertificate("web-1");

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "kts-rot-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

function pairFor(wanted: CertificateSpec, clock: FakeClock, key = newKey()): { certificate: string; key: string } {
  const notBefore = clock.now().wall;
  return {
    key,
    certificate: certificate(key, { ...wanted, notBefore, notAfter: notBefore + HOUR, usages: ["client"] }),
  };
}

test("the store keeps each pair, readable by its owner only, and links to the current one", async (t) => {
  const directory = join(folder(t), "pki");
  const clock = new FakeClock({ wall: Date.UTC(2026, 4, 6, 7, 8, 9), mono: 0 });
  const store = new CertStore(clock, { directory, prefix: "kubelet-client" });
  assert.equal(await store.load(), undefined);
  const first = pairFor(client, clock);
  await store.save(first.certificate, first.key);
  await clock.advance(1000);
  const second = pairFor(client, clock);
  await store.save(second.certificate, second.key);
  assert.deepEqual(readdirSync(directory).sort(), [
    "kubelet-client-2026-05-06-07-08-09.pem",
    "kubelet-client-2026-05-06-07-08-10.pem",
    "kubelet-client-current.pem",
  ]);
  assert.equal(readlinkSync(store.currentPath), join(directory, "kubelet-client-2026-05-06-07-08-10.pem"));
  assert.equal(statSync(store.currentPath).mode & 0o777, 0o600);
  const loaded = await store.load();
  assert.equal(loaded?.certificate, second.certificate.trimEnd());
  assert.equal(loaded?.key, second.key.trimEnd());
  assert.equal(loaded?.notAfter, clock.now().wall + HOUR);
  assert.ok(readFileSync(store.currentPath, "utf8").startsWith("-----BEGIN CERTIFICATE-----"));
});

test("a link that a crash left under its other name is taken over; a file in its place is refused", async (t) => {
  const directory = folder(t);
  const clock = new FakeClock();
  const store = new CertStore(clock, { directory, prefix: "kubelet-client" });
  const pair = pairFor(client, clock);
  await store.save(pair.certificate, pair.key);
  renameSync(store.currentPath, join(directory, "kubelet-client-updated.pem"));
  assert.ok(await store.load());
  assert.ok(lstatSync(store.currentPath).isSymbolicLink());
  rmSync(store.currentPath);
  writeFileSync(store.currentPath, pair.certificate);
  await assert.rejects(store.load(), (error) => error instanceof CertStoreError && error.code === "NotALink");
});

test("without a current pair the given files are read, then those of old agents", async (t) => {
  const directory = folder(t);
  const clock = new FakeClock();
  const pair = pairFor(client, clock);
  writeFileSync(join(directory, "kubelet-client.crt"), pair.certificate);
  writeFileSync(join(directory, "kubelet-client.key"), pair.key);
  const old = await new CertStore(clock, { directory, prefix: "kubelet-client" }).load();
  assert.equal(old?.path, join(directory, "kubelet-client.crt"));
  writeFileSync(join(directory, "mine.crt"), "nonsense");
  writeFileSync(join(directory, "mine.key"), "nonsense");
  const fallback = { certificate: join(directory, "mine.crt"), key: join(directory, "mine.key") };
  const store = new CertStore(clock, { directory, prefix: "kubelet-client", fallback });
  await assert.rejects(store.load(), (error) => error instanceof CertStoreError && error.code === "Unusable");
});

test("rotation falls between 70 and 90 per cent of the lifetime", () => {
  const pair = { notBefore: 1000, notAfter: 2000 };
  assert.equal(rotationTime(pair, 0), 1700);
  assert.equal(rotationTime(pair, 0.5), 1800);
  assert.ok(rotationTime(pair, 0.999999) < 1900);
});

const serving: CertificateSpec = {
  signer: "kubernetes.io/kubelet-serving",
  subject: client.subject,
  dnsNames: ["web-1"],
  addresses: ["10.0.0.7", "fd00::7"],
};

for (const { name, made, wanted, why } of [
  { name: "the same", made: serving, wanted: serving, why: undefined },
  { name: "a name too many", made: { ...serving, dnsNames: ["web-1", "old"] }, wanted: serving, why: undefined },
  { name: "a missing name", made: { ...serving, dnsNames: [] }, wanted: serving, why: "it lacks the name web-1" },
  {
    name: "a missing address",
    made: { ...serving, addresses: ["10.0.0.7"] },
    wanted: serving,
    why: "it lacks the address fd00::7",
  },
  { name: "another node", made: clientCertificate("web-2"), wanted: client, why: "it lacks CN=system:node:web-1" },
  {
    name: "another group",
    made: { ...client, subject: { commonName: "system:node:web-1" } },
    wanted: client,
    why: "it lacks O=system:nodes",
  },
]) {
  test(`a certificate with ${name}: ${why ?? "kept"}`, () => {
    const clock = new FakeClock();
    const pair = { ...pairFor(made, clock), path: "", notBefore: 0, notAfter: Number.POSITIVE_INFINITY };
    assert.equal(whyReplace(pair, wanted, clock.now().wall), why);
  });
}

test("the name of a request is the same for the same key and spec only", () => {
  const key = newKey();
  assert.equal(stableName(client, key), stableName({ ...client }, key));
  assert.notEqual(stableName(client, key), stableName(client, newKey()));
  assert.notEqual(stableName(client, key), stableName(clientCertificate("web-2"), key));
  assert.match(stableName(client, key), /^node-csr-[\w-]{43}$/);
});

/** A server whose signer does what the test says. */
async function signer(t: TestContext) {
  const server = await FakeApiServer.start();
  const clock = new FakeClock({ wall: Date.now(), mono: 0 });
  const clients = testClients(clock, clientConfig([server.url], server.authorityPem));
  t.after(async () => {
    clients.close();
    await server.stop();
  });
  const place = { collection: "v1/certificatesigningrequests", namespace: "", name: "" };
  const open = () => server.objects.list(place, "").filter((object) => object.status === undefined);
  const settle = (status: unknown): void => {
    for (const object of open()) server.objects.replace({ ...place, name: object.metadata.name }, { status }, "status");
  };
  return { server, clock, api: clients.calls, open, settle, all: () => server.objects.list(place, "") };
}

const signed = (pem: string) => ({
  conditions: [{ type: "Approved" }],
  certificate: Buffer.from(pem).toString("base64"),
});

for (const { name, status, code, message } of [
  {
    name: "denied",
    status: { conditions: [{ type: "Denied", reason: "No", message: "not you" }] },
    code: "Denied",
    message: /was denied: No: not you$/,
  },
  {
    name: "failed",
    status: { conditions: [{ type: "Approved" }, { type: "Failed", reason: "Broken" }] },
    code: "Failed",
    message: /was not signed: Broken$/,
  },
]) {
  test(`a request that is ${name} says why`, async (t) => {
    const { api, clock, open, settle } = await signer(t);
    const options = { ...never, key: newKey(), limitMs: HOUR, name: "generated" } as const;
    const answer = requestCertificate({ api, clock }, client, options).catch((error: unknown) => error);
    await until("the request", () => open().length === 1);
    settle(status);
    const error = await answer;
    assert.ok(error instanceof SigningError);
    assert.equal(error.code, code);
    assert.match(error.message, message);
  });
}

test("a request that nobody signs ends by its limit", async (t) => {
  const { api, clock, open, server } = await signer(t);
  const options = { ...never, key: newKey(), limitMs: 60_000, name: "generated" } as const;
  const answer = requestCertificate({ api, clock }, client, options).catch((error: unknown) => error);
  await until("the request", () => open().length === 1 && server.openWatches === 1);
  await clock.advance(60_000);
  const error = await answer;
  assert.ok(error instanceof SigningError);
  assert.equal(error.code, "Timeout");
});

test("bootstrap: key kept over a crash, the same request adopted, kubeconfig written, key removed", async (t) => {
  const { api, clock, open, settle, all, server } = await signer(t);
  const directory = join(folder(t), "pki");
  const kubeconfig = join(directory, "kubeconfig");
  const store = new CertStore(clock, { directory, prefix: "kubelet-client" });
  const config = clientConfig([server.url], server.authorityPem, { token: "boot" });
  const deps = { api, clock, store, log: silent };
  const crash = new AbortController();
  const base = { nodeName: "web-1", directory, kubeconfig, config };
  const first = bootstrap(deps, { ...base, signal: crash.signal }).catch((error: unknown) => error);
  await until("the request", () => open().length === 1);
  crash.abort(new Error("crash"));
  await first;
  const keyFile = join(directory, "kubelet-client.key.tmp");
  assert.equal(statSync(keyFile).mode & 0o777, 0o600);
  assert.equal(await isKubeconfigUsable(kubeconfig, { ...never, clock }), false);
  const key = readFileSync(keyFile, "utf8");
  const second = bootstrap(deps, { ...base, ...never });
  settle(signed(pairFor(client, clock, key).certificate));
  await second;
  assert.equal(all().length, 1);
  const spec = all()[0]?.spec as { usages?: unknown } | undefined;
  assert.deepEqual(spec?.usages, ["digital signature", "client auth"]);
  assert.equal(await isKubeconfigUsable(kubeconfig, { ...never, clock }), true);
  assert.match(readFileSync(kubeconfig, "utf8"), /"client-key": ".*kubelet-client-current\.pem"/);
  assert.deepEqual(
    readdirSync(directory).filter((name) => name.endsWith(".tmp")),
    [],
  );
  clock.setWall(clock.now().wall + 2 * HOUR);
  assert.equal(await isKubeconfigUsable(kubeconfig, { ...never, clock }), false);
});

test("rotation: asks in time with a new key, stores, tells; a spec that changes is followed at once", async (t) => {
  const { api, clock, open, settle } = await signer(t);
  const directory = folder(t);
  const store = new CertStore(clock, { directory, prefix: "kubelet-client" });
  const live = new LiveValue<CertificateSpec | undefined>(undefined);
  const rotated: string[] = [];
  const rotation = new CertificateRotation(
    { api: () => api, store, clock, log: silent, random: () => 0 },
    { spec: live, onRotated: (pair) => rotated.push(pair.path) },
  );
  const controller = new AbortController();
  const running = rotation.run(controller);
  t.after(async () => {
    controller.abort();
    await running;
  });
  /** The fake signer cannot read a request, so it signs a key of its own: the store does not mind. */
  const sign = async (wanted: CertificateSpec, count: number): Promise<void> => {
    await until("a request", () => open().length === 1);
    settle(signed(pairFor(wanted, clock).certificate));
    await until("a rotation", () => rotated.length === count);
  };
  await clock.advance(10 * HOUR);
  assert.equal(open().length, 0);
  live.set(client);
  await sign(client, 1);
  await clock.advance(0.69 * HOUR);
  assert.equal(open().length, 0);
  await clock.advance(0.02 * HOUR);
  await sign(client, 2);
  await clock.advance(1000);
  live.set(clientCertificate("renamed"));
  await sign(clientCertificate("renamed"), 3);
  assert.equal(new Set(rotated).size, 3);
  assert.equal(rotation.facts.failures, 0);
  assert.ok((rotation.facts.expiresAt ?? 0) > clock.now().wall);
});

test("rotation: a denial is tried again after 2, 4, 8 s", async (t) => {
  const { api, clock, open, settle, all } = await signer(t);
  const store = new CertStore(clock, { directory: folder(t), prefix: "kubelet-client" });
  const rotation = new CertificateRotation(
    { api: () => api, store, clock, log: silent, random: () => 0 },
    { spec: new LiveValue<CertificateSpec | undefined>(client), onRotated: () => undefined },
  );
  const controller = new AbortController();
  const running = rotation.run(controller);
  t.after(async () => {
    controller.abort();
    await running;
  });
  for (const [index, pause] of [2000, 4000, 8000].entries()) {
    await until("a request", () => open().length === 1);
    settle({ conditions: [{ type: "Denied" }] });
    await until("the pause", () => clock.nextIn === pause);
    assert.equal(all().length, index + 1);
    assert.deepEqual(rotation.facts, { failures: index + 1 });
    await clock.advance(pause);
  }
});

test("rotation: a pair that came from elsewhere is replaced at once, and then only in time", async (t) => {
  const { api, clock, open, settle } = await signer(t);
  const store = new CertStore(clock, { directory: folder(t), prefix: "kubelet-client" });
  const given = pairFor(client, clock);
  await store.save(given.certificate, given.key);
  const rotated: string[] = [];
  const rotation = new CertificateRotation(
    { api: () => api, store, clock, log: silent, random: () => 0 },
    {
      spec: new LiveValue<CertificateSpec | undefined>(client),
      isForeign: true,
      onRotated: (pair) => rotated.push(pair.path),
    },
  );
  const controller = new AbortController();
  const running = rotation.run(controller);
  t.after(async () => {
    controller.abort();
    await running;
  });
  await until("a request", () => open().length === 1);
  settle(signed(pairFor(client, clock).certificate));
  await until("a rotation", () => rotated.length === 1);
  await clock.advance(0.5 * HOUR);
  assert.equal(open().length, 0);
});
