import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { KubeconfigError } from "./client-config.ts";
import { parseKubeconfig } from "./kubeconfig.ts";

const options = { clock: new FakeClock(), signal: new AbortController().signal };
const pem = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n";
const data = Buffer.from(pem).toString("base64");

const config = (cluster: string, user: string): string => `
apiVersion: v1
kind: Config
current-context: work
contexts:
- {name: other, context: {cluster: nowhere, user: nobody}}
- {name: work, context: {cluster: main, user: me, namespace: team}}
clusters:
- name: main
  cluster: {server: "https://api.example:6443"${cluster}}
users:
- name: me
  user: {${user}}
`;

const parse = (cluster: string, user: string) =>
  parseKubeconfig(config(cluster, user), "/etc/node/kubeconfig", options);

test("certificates inline", async () => {
  const user = `client-certificate-data: ${data}, client-key-data: ${data}`;
  assert.deepEqual(await parse(`, certificate-authority-data: ${data}`, user), {
    servers: ["https://api.example:6443"],
    isInsecure: false,
    authority: { kind: "data", pem },
    namespace: "team",
    identity: { certificate: { kind: "data", pem }, key: { kind: "data", pem } },
  });
});

test("files are relative to the kubeconfig, and the data wins over a file", async () => {
  const user = `client-certificate: pki/me.crt, client-key: /abs/me.key, tokenFile: ../token`;
  const { authority, identity } = await parse(", certificate-authority: pki/ca.crt", user);
  assert.deepEqual(authority, { kind: "file", path: "/etc/node/pki/ca.crt" });
  assert.deepEqual(identity, {
    certificate: { kind: "file", path: "/etc/node/pki/me.crt" },
    key: { kind: "file", path: "/abs/me.key" },
    tokenFile: "/etc/token",
  });
  const both = await parse(`, certificate-authority: x, certificate-authority-data: ${data}`, "");
  assert.deepEqual(both.authority, { kind: "data", pem });
});

test("server name, proxy, insecure, token, impersonation", async () => {
  const cluster = `, tls-server-name: inner, proxy-url: "socks5://proxy:1080", insecure-skip-tls-verify: true`;
  const user = `token: abc, as: jane, as-uid: "7", as-groups: [dev], as-user-extra: {reason: [test]}`;
  const parsed = await parse(cluster, user);
  assert.equal(parsed.serverName, "inner");
  assert.equal(parsed.proxyUrl, "socks5://proxy:1080");
  assert.equal(parsed.isInsecure, true);
  assert.deepEqual(parsed.identity, {
    token: "abc",
    impersonate: { user: "jane", uid: "7", groups: ["dev"], extra: { reason: ["test"] } },
  });
});

test("an exec plug-in: a path is relative to the file, a name stays one", async () => {
  const exec = (command: string): string =>
    `exec: {apiVersion: client.authentication.k8s.io/v1, command: ${command}, args: [get], env: [{name: A, value: b}], interactiveMode: Never, provideClusterInfo: true}`;
  const { identity } = await parse("", exec("bin/login"));
  assert.deepEqual(identity.exec, {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "/etc/node/bin/login",
    args: ["get"],
    env: { A: "b" },
    installHint: "",
    provideClusterInfo: true,
  });
  assert.equal((await parse("", exec("login"))).identity.exec?.command, "login");
});

test("several servers may stand in for the one of the file, another context may be chosen", async () => {
  const servers = ["https://a:1", "https://b:2"];
  assert.deepEqual((await parseKubeconfig(config("", ""), "/k", { ...options, servers })).servers, servers);
  await assert.rejects(
    parseKubeconfig(config("", ""), "/k", { ...options, context: "other" }),
    /clusters has no "nowhere" \(there: main\)/,
  );
});

test("one cluster and one user need no context", async () => {
  const text = `{"clusters": [{"name": "x", "cluster": {"server": "http://localhost:8080"}}]}`;
  const parsed = await parseKubeconfig(text, "/k", options);
  assert.deepEqual(parsed.servers, ["http://localhost:8080"]);
  assert.equal(parsed.namespace, "default");
});

for (const { cluster = "", user = "", problem } of [
  {
    user: "username: admin, password: x",
    problem:
      "users[0].user.username is basic authentication, which no API server accepts since 1.19; use a certificate or a token",
  },
  {
    user: "auth-provider: {name: gcp}",
    problem: "users[0].user.auth-provider was removed from Kubernetes in 1.26; use an exec plug-in",
  },
  {
    user: `client-certificate: x`,
    problem: "users[0].user.client-key is missing although there is a client-certificate",
  },
  { user: `client-key: x`, problem: "users[0].user.client-certificate is missing although there is a client-key" },
  {
    user: "client-certificate-data: bm8=, client-key: x",
    problem: "users[0].user.client-certificate-data is not the base64 of a PEM text",
  },
  { user: "token: 12", problem: "users[0].user.token must be a text" },
  {
    user: "exec: {command: x}",
    problem:
      "users[0].user.exec.apiVersion must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1",
  },
  {
    user: "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}",
    problem: "users[0].user.exec.interactiveMode is Always, but an agent has no terminal to ask on",
  },
  { user: "as-groups: [x]", problem: "users[0].user.as is missing although other parts of an impersonation are there" },
  {
    cluster: ", insecure-skip-tls-verify: true, certificate-authority: x",
    problem: "clusters[0].cluster.insecure-skip-tls-verify is true although a certificate-authority is given; drop one",
  },
  {
    cluster: `, proxy-url: "ftp://x"`,
    problem: "clusters[0].cluster.proxy-url must begin with http://, https:// or socks5://",
  },
]) {
  test(`refused: ${problem}`, async () => {
    await assert.rejects(parse(cluster, user), (error) => {
      assert.ok(error instanceof KubeconfigError);
      assert.equal(error.message, `/etc/node/kubeconfig: ${problem}`);
      return true;
    });
  });
}

for (const { text, problem } of [
  { text: "", problem: /^\/k: file is empty$/ },
  { text: "a: [", problem: /^\/k: line 1/ },
  { text: "kind: Pod", problem: /^\/k: kind is "Pod", not "Config"$/ },
  { text: "[]", problem: /^\/k: the document must be an object$/ },
  { text: "clusters: {}", problem: /^\/k: clusters must be a list$/ },
  {
    text: "clusters: [{name: a, cluster: {server: 'x:1'}}]",
    problem: /^\/k: clusters\[0\]\.cluster\.server "x:1" is no URL like https:\/\/HOST:PORT$/,
  },
  { text: "clusters: [{}, {}]", problem: /^\/k: current-context is missing, and there are 2 clusters$/ },
]) {
  test(`refused: ${JSON.stringify(text)}`, () =>
    assert.rejects(parseKubeconfig(text, "/k", options), { message: problem }));
}
