import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { type AddressInfo, connect as connectTcp, createServer, type Socket, type TcpNetConnectOpts } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect } from "node:tls";
import { FakeClock, SystemClock } from "../../lib/clock.ts";
import { fixed, LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import { type CertificateContent, certificate, type Issuer, newKey } from "../kubeapi/certificates.ts";
import { type HttpListener, listenHttp } from "./http-server.ts";
import { selfSignedPair } from "./self-signed.ts";
import { TlsFiles } from "./tls-files.ts";
import type { TlsMaterial, TlsOptions } from "./tls-listener.ts";
import { openSslCiphers } from "./tls-names.ts";

const dir = mkdtempSync(join(tmpdir(), "tls-"));
after(() => rmSync(dir, { recursive: true }));

const now = Date.now();
const time = { notBefore: now - 3_600_000, notAfter: now + 3_600_000 };

interface Authority extends Issuer {
  readonly pem: string;
}

function authority(name: string): Authority {
  const keyPem = newKey();
  const subject = { commonName: name };
  return { subject, keyPem, pem: certificate(keyPem, { subject, ...time, usages: [], isAuthority: true }) };
}

const old = authority("old-ca");
const other = authority("other-ca");

function issue(issuer: Authority, more: Partial<CertificateContent> = {}): { cert: string; key: string } {
  const key = newKey();
  const subject = { commonName: "ann", organizations: ["dev", "ops"] };
  return { key, cert: certificate(key, { subject, ...time, usages: ["client"], ...more }, issuer) };
}

const serving = issue(old, { subject: { commonName: "node" }, usages: ["server"] });
const material = (more: Partial<TlsMaterial> = {}): TlsMaterial => ({
  certificate: serving.cert,
  key: serving.key,
  clientAuthorities: old.pem,
  ...more,
});

async function listening(
  { host = "127.0.0.1", ...options }: Partial<TlsOptions> & { host?: string },
  use: (listener: HttpListener, live: LiveValue<TlsMaterial>) => Promise<void>,
): Promise<void> {
  const live = new LiveValue(options.material?.current ?? material());
  const listener = await listenHttp(
    { log: silent },
    {
      address: { host, port: 0 },
      tls: { minVersion: "TLSv1.2", ...options, material: live },
      routes: [
        {
          methods: "any",
          path: "/who",
          handle: ({ peer }) => {
            const trust = peer?.isTrusted(Date.now()) === true ? "trusted" : "not trusted";
            const words = peer && `${peer.commonName} ${peer.organizations.join("+")} ${trust}`;
            return { status: 200, body: words ?? "nobody" };
          },
        },
      ],
    },
  );
  try {
    await use(listener, live);
  } finally {
    await listener.close();
  }
}

function get(port: number, client: object = {}): Promise<{ body: string; issuer: string }> {
  return new Promise((resolve, reject) => {
    const call = request({ host: "127.0.0.1", port, path: "/who", rejectUnauthorized: false, agent: false, ...client });
    call.on("error", reject).on("response", (response) => {
      let body = "";
      const issuer = (call.socket as import("node:tls").TLSSocket).getPeerCertificate().issuer?.CN ?? "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => resolve({ body, issuer: String(issuer) }));
    });
    call.end();
  });
}

async function connected(to: TcpNetConnectOpts): Promise<Socket> {
  const socket = connectTcp(to);
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  return socket;
}

const clients = [
  { name: "without a certificate", client: {}, want: "nobody" },
  { name: "of our CA", client: issue(old), want: "ann dev+ops trusted" },
  { name: "of another CA", client: issue(other), want: "ann dev+ops not trusted" },
  {
    name: "that has expired",
    client: issue(old, { notBefore: 0, notAfter: now - 1000 }),
    want: "ann dev+ops not trusted",
  },
  { name: "for servers only", client: issue(old, { usages: ["server"] }), want: "ann dev+ops not trusted" },
];
for (const { name, client, want } of clients) {
  test(`TLS: a client ${name}`, () =>
    listening({}, async ({ port }) => {
      assert.equal((await get(port, client)).body, want);
    }));
}

test("TLS: a chain with an intermediate certificate", () =>
  listening({}, async ({ port }) => {
    const middleKey = newKey();
    const subject = { commonName: "middle" };
    const middle = certificate(middleKey, { subject, ...time, usages: [], isAuthority: true }, old);
    const leaf = issue({ subject, keyPem: middleKey, pem: middle });
    assert.equal((await get(port, { key: leaf.key, cert: leaf.cert + middle })).body, "ann dev+ops trusted");
    assert.equal((await get(port, leaf)).body, "ann dev+ops not trusted");
  }));

test("TLS: new certificates are used for new connections, existing ones stay open", () =>
  listening({}, async ({ port }, live) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const client = { agent, ...issue(old) };
    assert.equal((await get(port, client)).issuer, "old-ca");
    const next = issue(other, { subject: { commonName: "node" }, usages: ["server"] });
    live.set(material({ certificate: next.cert, key: next.key }));
    assert.equal((await get(port, client)).issuer, "old-ca");
    const fresh = await get(port, issue(old));
    assert.deepEqual(fresh, { issuer: "other-ca", body: "ann dev+ops trusted" });
    agent.destroy();
  }));

test("TLS: new client authorities apply to existing connections", () =>
  listening({}, async ({ port }, live) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const client = { agent, ...issue(old) };
    assert.equal((await get(port, client)).body, "ann dev+ops trusted");
    live.set(material({ clientAuthorities: other.pem }));
    assert.equal((await get(port, client)).body, "ann dev+ops not trusted");
    assert.equal((await get(port, issue(other))).body, "ann dev+ops trusted");
    live.set(material({ clientAuthorities: old.pem + other.pem }));
    assert.equal((await get(port, client)).body, "ann dev+ops trusted");
    agent.destroy();
  }));

test("TLS: a connection that was silent while the client authorities were replaced is judged by the new ones", () =>
  listening({}, async ({ port }, live) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...issue(old) });
    await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
    // With TLS 1.3 the client is done before the server: one round trip more.
    assert.equal((await get(port, issue(old))).body, "ann dev+ops trusted");
    live.set(material({ clientAuthorities: other.pem }));
    socket.end("GET /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let text = "";
    for await (const chunk of socket) text += String(chunk);
    assert.match(text, /ann dev\+ops not trusted$/);
  }));

test("TLS: a second connection from the same port to another address does not change how the first is judged", () =>
  listening({ host: "0.0.0.0" }, async ({ port }, live) => {
    const client = issue(old);
    const first = await connected({ host: "127.0.0.1", port, localAddress: "127.0.0.1" });
    // Accepted by then: a whole request was answered after it.
    assert.equal((await get(port, client)).body, "ann dev+ops trusted");
    live.set(material({ clientAuthorities: other.pem }));
    const { localPort = 0 } = first;
    const second = await connected({ host: "127.0.0.2", port, localAddress: "127.0.0.1", localPort });
    assert.equal((await get(port, client)).body, "ann dev+ops not trusted");
    const socket = connect({ socket: first, rejectUnauthorized: false, ...client });
    socket.end("GET /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let text = "";
    for await (const chunk of socket) text += String(chunk);
    second.destroy();
    assert.match(text, /ann dev\+ops not trusted$/);
  }));

const swaps = [
  { name: "removed", before: old.pem, after: other.pem, want: "ann dev+ops not trusted" },
  { name: "added", before: other.pem, after: old.pem, want: "ann dev+ops trusted" },
];
for (const { name, before, after: swapped, want } of swaps) {
  test(`TLS: a client whose authority is ${name} during its handshake is judged by the new ones`, () =>
    listening({ material: fixed(material({ clientAuthorities: before })) }, async ({ port }, live) => {
      const relay = await heldRelay(port);
      try {
        const answer = get(relay.port, issue(old));
        await relay.held;
        live.set(material({ clientAuthorities: swapped }));
        relay.release();
        assert.equal((await answer).body, want);
      } finally {
        await relay.close();
      }
    }));
}

/** Passes one connection on, but holds what the client sends after its first message. */
async function heldRelay(to: number) {
  const queue: Buffer[] = [];
  let release = (): void => undefined;
  let onHeld = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    onHeld = resolve;
  });
  const server = createServer((client) => {
    const upstream = connectTcp({ host: "127.0.0.1", port: to });
    upstream.on("error", () => client.destroy()).pipe(client);
    let send = (chunk: Buffer): void => {
      upstream.write(chunk);
      send = (later) => {
        queue.push(later);
        onHeld();
      };
    };
    release = () => {
      send = (chunk) => void upstream.write(chunk);
      for (const chunk of queue) send(chunk);
    };
    client.on("data", (chunk: Buffer) => send(chunk));
    client.on("error", () => upstream.destroy()).on("close", () => upstream.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    held,
    release: () => release(),
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

test("TLS: client authorities may be added and removed", () =>
  listening({ material: fixed(material({ clientAuthorities: "" })) }, async ({ port }, live) => {
    assert.equal((await get(port, issue(old))).body, "nobody");
    live.set(material());
    assert.equal((await get(port, issue(old))).body, "ann dev+ops trusted");
    live.set(material({ clientAuthorities: "" }));
    assert.equal((await get(port, issue(old))).body, "nobody");
  }));

test("TLS: a key that does not match is rejected and the previous pair stays", () =>
  listening({}, async ({ port }, live) => {
    live.set(material({ key: newKey() }));
    live.set(material({ certificate: "garbage" }));
    assert.equal((await get(port)).issuer, "old-ca");
  }));

test("TLS: without a certificate every handshake fails, until there is one", () =>
  listening({ material: fixed(material({ certificate: "", key: "" })) }, async ({ port }, live) => {
    await assert.rejects(get(port));
    live.set(material());
    assert.equal((await get(port)).body, "nobody");
  }));

test("TLS: versions and ciphers are as configured", () =>
  listening(
    { minVersion: "TLSv1.2", ciphers: openSslCiphers(["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]).ciphers },
    async ({ port }) => {
      const cipher = (options: object): Promise<string> =>
        new Promise((resolve, reject) => {
          const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options });
          socket.on("error", reject).on("secureConnect", () => {
            resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
            socket.destroy();
          });
        });
      assert.equal(await cipher({ maxVersion: "TLSv1.2" }), "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384");
      assert.match(await cipher({}), /^TLSv1\.3 /);
      await assert.rejects(cipher({ maxVersion: "TLSv1.1", minVersion: "TLSv1" }));
      await assert.rejects(cipher({ maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" }));
    },
  ));

test("TLS: garbage closes the connection and nothing else", () =>
  listening({}, async ({ port }) => {
    for (const garbage of [
      Buffer.from("GET / HTTP/1.1\r\n\r\n"),
      Buffer.alloc(100_000, 0xff),
      Buffer.from([22, 3, 1, 255, 255]),
    ]) {
      await new Promise<void>((resolve) => {
        const socket = connectTcp(port, "127.0.0.1", () => socket.end(garbage));
        socket.on("error", () => undefined).on("close", () => resolve());
        socket.resume();
      });
    }
    assert.equal((await get(port)).body, "nobody");
  }));

test("the self-signed pair is valid for openssl, and generated only once", async () => {
  const place = join(dir, "pki");
  const pair = await selfSignedPair(place, "Node-1", now);
  assert.deepEqual(await selfSignedPair(place, "other", now), pair);
  assert.equal(statSync(join(place, "kubelet.key")).mode & 0o777, 0o600);
  assert.equal(statSync(join(place, "kubelet.crt")).mode & 0o777, 0o644);
  const text = execFileSync("openssl", ["x509", "-noout", "-text", "-in", join(place, "kubelet.crt")], {
    encoding: "utf8",
  });
  assert.match(text, /Subject: CN ?= ?node-1@\d+/);
  assert.match(text, /Issuer: CN ?= ?node-1-ca@\d+/);
  assert.match(text, /DNS:node-1/);
  assert.match(text, /TLS Web Server Authentication/);
  const [, ca = ""] = pair.certificate.split(/(?=-----BEGIN)/);
  writeFileSync(join(place, "ca.crt"), ca);
  execFileSync("openssl", ["verify", "-CAfile", join(place, "ca.crt"), join(place, "kubelet.crt")]);
});

test("half a pair is an error that names the missing file", async () => {
  const place = join(dir, "half");
  await selfSignedPair(place, "10.0.0.7", now);
  assert.match(readFileSync(join(place, "kubelet.crt"), "utf8"), /BEGIN CERTIFICATE/);
  rmSync(join(place, "kubelet.key"));
  await assert.rejects(selfSignedPair(place, "n", now), /kubelet\.crt exists without .*kubelet\.key/);
});

test("certificate files are reloaded once certificate and key match", async () => {
  const names = { certificate: join(dir, "t.crt"), key: join(dir, "t.key"), clientAuthorities: join(dir, "ca.pem") };
  writeFileSync(names.certificate, serving.cert);
  writeFileSync(names.key, serving.key);
  writeFileSync(names.clientAuthorities, old.pem);
  const clock = new SystemClock();
  const files = new TlsFiles({ clock, log: silent }, fixed(names));
  await files.load();
  const stop = new AbortController();
  const running = files.run(stop);
  const next = issue(other, { usages: ["server"] });
  const changed = new Promise<TlsMaterial>((resolve) => files.material.onChange(resolve, stop));
  writeFileSync(names.certificate, next.cert);
  writeFileSync(names.key, next.key);
  const seen = await changed;
  assert.deepEqual([seen.certificate, seen.key], [next.cert, next.key]);
  stop.abort();
  await running;
});

test("invalid authorities are rejected, and the previous ones stay", async () => {
  const place = join(dir, "minute.pem");
  writeFileSync(place, old.pem);
  const clock = new FakeClock();
  const names = { certificate: "", key: "", clientAuthorities: place };
  const files = new TlsFiles({ clock, log: silent }, fixed(names));
  await files.load();
  assert.equal(files.material.current.clientAuthorities, old.pem);
  writeFileSync(place, "no certificate");
  await assert.rejects(files.load(), /no certificate found/);
  assert.equal(files.material.current.clientAuthorities, old.pem);
});
