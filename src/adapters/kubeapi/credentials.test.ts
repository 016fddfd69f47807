import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { clientConfig, testClients } from "../../../test/contract/kubeapi-clients.ts";
import { FakeApiServer } from "../../../test/contract/kubeapi-fake-server.ts";
import { FakeClock, SystemClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import type { ExecPlugin } from "./client-config.ts";
import { Credentials } from "./credentials.ts";
import { ApiError } from "./port.ts";

const never = { signal: new AbortController().signal };

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "kts-cred-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** A plug-in that prints `answer` and counts its runs in a file. */
function plugin(dir: string, answer: string, extra: Partial<ExecPlugin> = {}): ExecPlugin {
  const script = join(dir, "plugin.mjs");
  writeFileSync(
    script,
    `import { appendFileSync } from "node:fs"; appendFileSync(${JSON.stringify(join(dir, "runs"))}, process.env.KUBERNETES_EXEC_INFO + "\\n"); process.stdout.write(${answer});`,
  );
  return {
    apiVersion: "client.authentication.k8s.io/v1",
    command: process.execPath,
    args: [script],
    env: { WHO: "robot" },
    installHint: "install it",
    provideClusterInfo: true,
    ...extra,
  };
}

const answerOf = (status: string): string =>
  `JSON.stringify({apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: ${status}})`;

test("a plug-in is asked once, again before its credential ends, and when the server refuses", async (t) => {
  const dir = folder(t);
  const clock = new FakeClock();
  const expires = new Date(clock.now().wall + 60_000).toISOString();
  const exec = plugin(dir, answerOf(`{token: process.env.WHO + process.pid, expirationTimestamp: "${expires}"}`));
  const credentials = new Credentials({ clock, log: silent }, clientConfig(["https://x"], "", { exec }));
  const token = async (): Promise<string> => String((await credentials.current(never)).headers.authorization);
  const first = await token();
  assert.match(first, /^Bearer robot\d+$/);
  assert.equal(await token(), first);
  await clock.advance(51_000);
  const second = await token();
  assert.notEqual(second, first);
  credentials.refresh();
  assert.notEqual(await token(), second);
});

for (const { name, answer, problem } of [
  { name: "nonsense", answer: `"nonsense"`, problem: /printed no JSON/ },
  { name: "another kind", answer: `"{}"`, problem: /printed no ExecCredential/ },
  { name: "nothing in it", answer: answerOf("{}"), problem: /neither a token nor a certificate/ },
  { name: "half a pair", answer: answerOf(`{clientKeyData: "x"}`), problem: /only one half/ },
  { name: "an error", answer: `(console.error("no login"), process.exit(3))`, problem: /ended with code 3: no login/ },
]) {
  test(`a plug-in that answers with ${name} is Unauthorized`, async (t) => {
    const exec = plugin(folder(t), answer);
    const credentials = new Credentials(
      { clock: new FakeClock(), log: silent },
      clientConfig(["https://x"], "", { exec }),
    );
    await assert.rejects(credentials.current(never), (error) => {
      assert.ok(error instanceof ApiError && error.code === "Unauthorized");
      assert.match(error.message, problem);
      return true;
    });
  });
}

test("a plug-in that is not installed says how to install it", async (t) => {
  const exec = plugin(folder(t), `""`, { command: "/no/such/program" });
  const credentials = new Credentials(
    { clock: new FakeClock(), log: silent },
    clientConfig(["https://x"], "", { exec }),
  );
  await assert.rejects(credentials.current(never), /ENOENT; install it$/);
});

/** A plug-in that starts a child, which keeps its output open, and writes its process id to a file. */
function parent(dir: string, ending: string): { exec: ExecPlugin; child(): Promise<string>; gone(): Promise<void> } {
  const file = join(dir, "child");
  const script = `sleep 600 & echo $! > ${file}.tmp; mv ${file}.tmp ${file}; ${ending}`;
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const child = async (): Promise<string> => {
    while (!existsSync(file)) await turn();
    return readFileSync(file, "utf8").trim();
  };
  const gone = async (): Promise<void> => {
    const place = `/proc/${await child()}/cwd`;
    while (existsSync(place)) await turn();
  };
  return { exec: { ...plugin(dir, `""`), command: "sh", args: ["-c", script] }, child, gone };
}

test("a plug-in that leaves a child with its output is answered, and the child is killed", async (t) => {
  const answer = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: { token: "t" } };
  const { exec, gone } = parent(folder(t), `echo '${JSON.stringify(answer)}'`);
  const deps = { clock: new SystemClock(), log: silent };
  const { headers } = await new Credentials(deps, clientConfig(["https://x"], "", { exec })).current(never);
  assert.equal(headers.authorization, "Bearer t");
  await gone();
});

test("a plug-in is killed at its time limit with its children, also if they keep its output", async (t) => {
  const { exec, child, gone } = parent(folder(t), "wait");
  const clock = new FakeClock();
  const credentials = new Credentials({ clock, log: silent }, clientConfig(["https://x"], "", { exec }));
  const failed = assert.rejects(credentials.current(never), /credential plug-in sh did not end within 60 s/);
  await child();
  await clock.advance(60_000);
  await failed;
  await gone();
});

test("a certificate of a plug-in is shown to the server", async (t) => {
  const server = await FakeApiServer.start();
  t.after(() => server.stop());
  const pair = server.clientPair("plugged");
  const status = JSON.stringify({ clientCertificateData: pair.certificate, clientKeyData: pair.key });
  const exec = plugin(folder(t), answerOf(status));
  const clients = testClients(new FakeClock(), clientConfig([server.url], server.authorityPem, { exec }));
  t.after(() => clients.close());
  await clients.calls.raw({ method: "GET", path: "/version" }, never);
  assert.equal(server.requests[0]?.client, "plugged");
});

/** A proxy that speaks just enough CONNECT and SOCKS5 for one connection at a time. */
async function proxy(t: TestContext, serve: (near: Socket, join: (port: number) => Socket) => void): Promise<string> {
  const open = new Set<Socket>();
  const server: Server = createServer((near) => {
    open.add(near.on("error", () => undefined));
    serve(near, (port) => {
      const far = connect(port, "127.0.0.1");
      far.on("error", () => undefined).on("close", () => near.destroy());
      near.on("close", () => far.destroy());
      far.pipe(near).pipe(far);
      return far;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const address = server.address();
  return `127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

const httpProxy =
  (seen: string[]) =>
  (near: Socket, join: (port: number) => Socket): void => {
    near.once("data", (head) => {
      seen.push(head.toString());
      const port = Number(/^CONNECT [^:]+:(\d+) /.exec(head.toString())?.[1]);
      near.write("HTTP/1.1 200 Connection established\r\n\r\n");
      join(port);
    });
  };

test("a connection goes through an HTTP proxy with its password", async (t) => {
  const server = await FakeApiServer.start();
  const seen: string[] = [];
  const address = await proxy(t, httpProxy(seen));
  const config = { ...clientConfig([server.url], server.authorityPem), proxyUrl: `http://me:p%40ss@${address}` };
  const clients = testClients(new FakeClock(), config);
  t.after(async () => {
    clients.close();
    await server.stop();
  });
  await clients.calls.raw({ method: "GET", path: "/version" }, never);
  assert.match(seen[0] ?? "", new RegExp(`Proxy-Authorization: Basic ${Buffer.from("me:p@ss").toString("base64")}`));
});

test("a connection goes through a SOCKS5 proxy", async (t) => {
  const server = await FakeApiServer.start();
  const address = await proxy(t, (near, join) => {
    near.once("data", () => {
      near.write(Buffer.from([5, 0]));
      near.once("data", (request) => {
        near.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
        join(request.readUInt16BE(request.length - 2));
      });
    });
  });
  const config = { ...clientConfig([server.url], server.authorityPem), proxyUrl: `socks5://${address}` };
  const clients = testClients(new FakeClock(), config);
  t.after(async () => {
    clients.close();
    await server.stop();
  });
  await clients.calls.raw({ method: "GET", path: "/version" }, never);
  assert.equal(server.requests.length, 1);
});

test("a proxy that refuses is named", async (t) => {
  const address = await proxy(t, (near) => near.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"));
  const config = { ...clientConfig(["https://127.0.0.1:1"], "x"), authority: undefined, proxyUrl: `http://${address}` };
  const clients = testClients(new FakeClock(), config);
  t.after(() => clients.close());
  await assert.rejects(
    clients.calls.raw({ method: "GET", path: "/" }, never),
    /proxy 127\.0\.0\.1:\d+: answered "HTTP\/1\.1 407/,
  );
});

test("while the certificate is missing nobody is asked without one; it is used a moment after it is there", async (t) => {
  const dir = folder(t);
  const server = await FakeApiServer.start();
  t.after(() => server.stop());
  const clock = new FakeClock();
  const file = { kind: "file", path: join(dir, "current.pem") } as const;
  const config = clientConfig([server.url], server.authorityPem, { certificate: file, key: file });
  const credentials = new Credentials({ clock, log: silent }, config);
  for (let n = 0; n < 3; n++) {
    await assert.rejects(
      credentials.current(never),
      (error) => error instanceof ApiError && error.code === "Unauthorized",
    );
  }
  const { certificate, key } = server.clientPair("me");
  writeFileSync(file.path, certificate + key);
  await clock.advance(1000);
  assert.equal((await credentials.current(never)).tls.certificate, certificate + key);
});
