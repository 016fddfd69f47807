import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeApiServer } from "../../../test/contract/kubeapi-fake-server.ts";
import { until } from "../../../test/contract/kubeapi-suite.ts";
import { agentOptions, OptionStore, parseAgentOptions } from "../../config/index.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import { connectApi } from "./connect.ts";
import { CertStore, certificate, clientCertificate, newKey } from "./index.ts";

const HOUR = 3_600_000;
const REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A server, a folder, and an agent of the node n1 whose certificates are renewed. */
async function scene(t: TestContext) {
  const server = await FakeApiServer.start();
  const dir = mkdtempSync(join(tmpdir(), "kt-conn-"));
  const clock = new FakeClock({ wall: Date.now(), mono: 0 });
  const paths = { kubeconfig: join(dir, "kubeconfig"), bootstrap: join(dir, "bootstrap"), pki: join(dir, "pki") };
  const store = new CertStore(clock, { directory: paths.pki, prefix: "kubelet-client" });
  const kubeconfig = (path: string, user: object): void => {
    const cluster = { server: server.url, "certificate-authority-data": base64(server.authorityPem) };
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      clusters: [{ name: "c", cluster }],
      users: [{ name: "u", user }],
    };
    writeFileSync(path, JSON.stringify(config));
  };
  const pair = (from: number, to: number) => {
    const key = newKey();
    const span = { notBefore: Date.now() + from, notAfter: Date.now() + to };
    return { key, certificate: certificate(key, { ...clientCertificate("n1"), ...span, usages: ["client"] }) };
  };
  const connect = async (...flags: string[]) => {
    const all = ["--rotate-certificates", `--kubeconfig=${paths.kubeconfig}`, `--cert-dir=${paths.pki}`, ...flags];
    const options = new OptionStore(agentOptions, parseAgentOptions(all).values);
    const stop = manyListeners();
    const connection = await connectApi({ clock, log: silent, store: options }, "n1", stop);
    const running = connection?.rotate?.(stop.signal);
    t.after(async () => {
      stop.abort();
      await running;
      connection?.clients.close();
    });
    return connection;
  };
  /** How whoever asked for a certificate showed himself. */
  const asked = async (): Promise<{ token: unknown; client: string }> => {
    const isAsking = ({ method, path }: { method: string; path: string }): boolean =>
      method === "POST" && path === REQUESTS;
    await until("a request", () => server.requests.some(isAsking));
    const found = server.requests.find(isAsking);
    return { token: found?.headers["authorization"], client: found?.client ?? "" };
  };
  t.after(async () => {
    await server.stop();
    rmSync(dir, { recursive: true });
  });
  return { server, clock, paths, store, kubeconfig, pair, connect, asked };
}

test("with a bootstrap token nothing waits for the certificate: it is asked for in the background", async (t) => {
  const { paths, store, kubeconfig, connect, asked } = await scene(t);
  kubeconfig(paths.bootstrap, { token: "first" });
  await connect(`--bootstrap-kubeconfig=${paths.bootstrap}`);
  const written = JSON.parse(readFileSync(paths.kubeconfig, "utf8")) as { users: { user: object }[] };
  const link = { "client-certificate": store.currentPath, "client-key": store.currentPath };
  assert.deepEqual(written.users[0]?.user, link);
  assert.deepEqual(await asked(), { token: "Bearer first", client: "" });
});

test("a certificate that has ended is replaced with the bootstrap token, as long as there is one", async (t) => {
  const { paths, store, kubeconfig, pair, connect, asked } = await scene(t);
  kubeconfig(paths.bootstrap, { token: "first" });
  const old = pair(-2 * HOUR, -HOUR);
  await store.save(old.certificate, old.key);
  const link = { "client-certificate": store.currentPath, "client-key": store.currentPath };
  kubeconfig(paths.kubeconfig, link);
  await connect(`--bootstrap-kubeconfig=${paths.bootstrap}`);
  assert.deepEqual(await asked(), { token: "Bearer first", client: "" });
});

test("a certificate that the kubeconfig holds goes to the store, and with it one of our own is asked for", async (t) => {
  const { server, paths, store, kubeconfig, connect, asked } = await scene(t);
  const { key, certificate: pem } = server.clientPair("system:node:n1");
  kubeconfig(paths.kubeconfig, { "client-certificate-data": base64(pem), "client-key-data": base64(key) });
  // Tools that join a node remove the file and leave the flag.
  await connect(`--bootstrap-kubeconfig=${paths.bootstrap}`);
  assert.equal((await store.load())?.certificate, pem.trimEnd());
  assert.deepEqual(await asked(), { token: undefined, client: "system:node:n1" });
});

test("the pair of an earlier rotation wins over the one in the kubeconfig, and is kept", async (t) => {
  const { server, clock, paths, store, kubeconfig, pair, connect } = await scene(t);
  const { key, certificate: pem } = server.clientPair("system:node:n1");
  kubeconfig(paths.kubeconfig, { "client-certificate-data": base64(pem), "client-key-data": base64(key) });
  const own = pair(0, HOUR);
  await store.save(own.certificate, own.key);
  const connection = await connect();
  await clock.advance(HOUR / 2);
  assert.equal((await store.load())?.certificate, own.certificate.trimEnd());
  assert.equal(connection?.certificate?.().failures, 0);
  assert.deepEqual(server.requests, []);
});
