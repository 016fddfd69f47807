/** The listeners of the local API under attack: strangers, large bodies, odd paths, crowds. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { request as requestTls } from "node:https";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import { TestAuthority } from "../support/control-plane-pki.ts";
import { freePort } from "../support/free-port.ts";
import { LocalApiServer } from "../support/local-api-server.ts";
import { until } from "./support/until.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const MIB = 1 << 20;
/** An identity for TLS. */
interface Identity {
  readonly cert?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

describe("the local API under attack", () => {
  const dir = mkdtempSync(join(tmpdir(), "k-"));
  const socket = join(dir, "s");
  const sockets = new Set<Socket>();
  let server: LocalApiServer;
  let port: number;

  before(async () => {
    port = await freePort();
    server = await LocalApiServer.start(join(dir, "objects"), socket, port);
  });
  after(async () => {
    for (const one of sockets) one.destroy();
    await server?.end("SIGTERM");
    rmSync(dir, { recursive: true, force: true });
  });

  const resident = (): number =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.program.pid}/status`, "utf8"))?.[1]) / 1024;

  function ask(path: string, { headers = {}, ...identity }: Identity = {}): Promise<number> {
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, path, headers, rejectUnauthorized: false, agent: false, ...identity };
      const asked = requestTls(options, (answer) => {
        answer.resume().on("end", () => resolve(answer.statusCode ?? 0));
      });
      asked.on("error", reject).end();
    });
  }

  function dial(options: { port: number; host: string } | { path: string }): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const one = connect(options, () => resolve(one));
      sockets.add(one);
      one.on("error", reject).on("close", () => sockets.delete(one));
    });
  }

  test("strangers learn that there is a server, and nothing else", async () => {
    const stranger = new TestAuthority().client({ commonName: "admin", organizations: ["system:masters"] });
    const cases: readonly Identity[] = [
      {},
      { cert: stranger.certificate, key: stranger.key },
      { headers: { authorization: "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9." } },
      { headers: { authorization: "Basic cm9vdDpyb290" } },
      { headers: { "x-remote-user": "admin", "x-remote-group": "system:masters" } },
    ];
    for (const identity of cases) {
      assert.equal(
        await ask("/version", identity),
        identity.headers?.["authorization"]?.startsWith("Bearer") ? 401 : 200,
      );
      for (const path of [
        "/api",
        "/apis",
        "/openapi/v3",
        "/api/v1/secrets",
        "/manifests",
        "/",
        "/version/../api/v1/secrets",
      ]) {
        const status = await ask(path, identity);
        assert.ok(status === 401 || status === 400, `${path}: ${status}`);
      }
    }
  });

  test("the certificate of the kubeconfig opens it, and who it acts as may do nothing", async () => {
    const config = parse(readFileSync(join(dir, "objects/kubeconfig"), "utf8")) as {
      users: { user: Record<string, string> }[];
    };
    const decode = (field: string): string =>
      Buffer.from(config.users[0]?.user[field] ?? "", "base64").toString("utf8");
    const identity = { cert: decode("client-certificate-data"), key: decode("client-key-data") };
    assert.equal(await ask("/api/v1/secrets", identity), 200);
    assert.equal(await ask("/api/v1/secrets", { ...identity, headers: { "impersonate-user": "jane" } }), 403);
  });

  test("the socket, the kubeconfig and the keys are root's alone", () => {
    for (const path of [socket, join(dir, "objects/kubeconfig"), join(dir, "objects/secrets.key")]) {
      assert.equal(statSync(path).mode & 0o077, 0, path);
    }
    if (process.getuid?.() !== 0) return;
    spawnSync("chmod", ["755", dir]);
    // It becomes somebody else by itself: where the root directory is closed to others, they cannot start a program.
    const drop = "process.setgroups([]); process.setgid(65534); process.setuid(65534);";
    const program = `${drop} require("net").connect(${JSON.stringify(socket)}, () => process.exit(3)).on("error", (e) => { console.log(e.code); process.exit(0); })`;
    const tried = spawnSync(process.execPath, ["-e", program], { encoding: "utf8", cwd: "/" });
    assert.equal(tried.stdout.trim(), "EACCES", `${tried.status} ${tried.stderr}`);
  });

  test("paths cannot escape, and none is an internal error", async () => {
    const paths = [
      ...[`${MAPS}/../secrets`, `${MAPS}/%2e%2e/secrets`, `${MAPS}/..%2fsecrets`, "/api/v1/%00", "//etc/passwd"],
      ...[
        "/api/v1/namespaces/default%2Fsecrets",
        "/api/v1/namespaces//pods",
        "/apis/../api",
        "/%",
        "/api/v1/..;/secrets",
      ],
      ...[
        `${MAPS}/__proto__`,
        "/api/v1/constructor",
        "/apis/__proto__/v1/pods",
        `/${"a".repeat(8000)}`,
        `${MAPS}/a%0d%0ab`,
      ],
      ...[
        `${MAPS}?limit=999999999999999999999`,
        `${MAPS}?labelSelector=${"(".repeat(2000)}`,
        `${MAPS}?watch=1&timeoutSeconds=-1&resourceVersion=9e99`,
      ],
    ];
    for (const path of paths) {
      const { status, text } = await server.ask("GET", path);
      assert.ok(status >= 200 && status < 500, `${path}: ${status} ${text.slice(0, 200)}`);
      assert.ok(!text.includes("SecretList") && !text.includes("root:x:"), path);
    }
  });

  test("a body of 100 MB is refused without being held", async () => {
    const before = resident();
    for (const path of [MAPS, "/manifests"]) {
      const answer = await server.ask("POST", path, "x".repeat(100 * MIB)).catch((error: Error) => error);
      // The connection may be closed before all of it is sent.
      if (!(answer instanceof Error)) assert.equal(answer.status, 413, answer.text);
    }
    assert.ok(resident() - before < 60, `${before} MB, then ${resident()} MB`);
  });

  /** Sends a request on the socket and never reads a byte of the answer beyond its first line. */
  async function askAndStop(path: string): Promise<{ readonly socket: Socket; readonly status: number }> {
    const one = await dial({ path: socket });
    one.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await once(one, "readable");
    const head = String(one.read(12) ?? "");
    return { socket: one, status: Number(head.slice(9)) };
  }

  /** Makes configmaps in a namespace of their own, so many bytes each. */
  async function fill(namespace: string, count: number, bytes: number): Promise<string> {
    await server.ask("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const data = { fill: "f".repeat(bytes) };
    for (let index = 0; index < count; index++) {
      const { status } = await server.ask("POST", path, { metadata: { name: `map-${index}` }, data });
      assert.equal(status, 201);
    }
    return path;
  }

  test("a hundred watches that never read take little, however much there is to say", async () => {
    const path = await fill("unread", 1, 10);
    // 60 MB of events: 300 changes of 200 KB.
    const writeAll = async (): Promise<void> => {
      for (let index = 0; index < 300; index++) {
        const data = { fill: "w".repeat(200_000), index: String(index) };
        const { status } = await server.ask("PUT", `${path}/map-0`, { metadata: { name: "map-0" }, data });
        assert.equal(status, 200);
      }
    };
    await writeAll();
    await server.collect();
    const before = resident();
    const watches = await Promise.all(Array.from({ length: 100 }, () => askAndStop(`${path}?watch=1`)));
    assert.ok(watches.every(({ status }) => status === 200));
    await writeAll();
    let held = 0;
    // What was collected is given back a moment later.
    const isLittle = async (): Promise<boolean> => {
      await server.collect();
      held = resident();
      return held - before < 40;
    };
    await until("they take little", isLittle, { seen: () => `${before} MB, then ${held} MB` });
    console.log(`100 unread watches: ${before.toFixed(0)} MB, then ${held.toFixed(0)} MB`);
    const began = performance.now();
    assert.equal((await server.ask("GET", `${path}/map-0`)).status, 200);
    assert.ok(performance.now() - began < 2000);
    for (const { socket: one } of watches) one.destroy();
    await server.ask("DELETE", path);
  });

  test("lists that nobody reads are bounded: others are told to come again, and small requests are answered", async () => {
    const path = await fill("lists", 100, 100_000);
    const before = resident();
    const lists = await Promise.all(Array.from({ length: 300 }, () => askAndStop(path)));
    const refused = lists.filter(({ status }) => status === 429).length;
    console.log(`300 unread lists, ${refused} refused: ${before.toFixed(0)} MB, then ${resident().toFixed(0)} MB`);
    assert.ok(refused > 0 && refused < 300, `${refused} of 300 were refused`);
    assert.ok(resident() - before < 150, `${before} MB, then ${resident()} MB`);
    assert.equal((await server.ask("GET", `${path}?limit=1`)).status, 200);
    assert.equal((await server.ask("POST", MAPS, { metadata: { name: "meanwhile" } })).status, 201);
    for (const { socket: one } of lists) one.destroy();
    // What was held is free again as soon as the clients are gone.
    let status = 0;
    const isAnswered = async (): Promise<boolean> => {
      ({ status } = await server.ask("GET", path));
      return status !== 429;
    };
    await until("there is room again", isAnswered);
    assert.equal(status, 200);
    await server.ask("DELETE", path);
  });

  test("bodies that never end are bounded", async () => {
    const before = resident();
    const piece = "x".repeat(1 << 20);
    const head = `POST ${MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n`;
    let refused = 0;
    // Each is refused, or is taken as far as it was sent.
    await Promise.all(
      Array.from({ length: 200 }, async () => {
        const one = await dial({ path: socket });
        const answered = once(one, "data").then(([bytes]) => {
          if (String(bytes).slice(9, 12) === "429") refused++;
        });
        const sent = new Promise((resolve) => one.write(`${head}{"data":{"x":"${piece}${piece}`, resolve));
        await Promise.race([answered, sent]);
      }),
    );
    await until("most are refused", () => refused > 100, { seen: () => `${refused} of 200 were refused` });
    console.log(`200 unfinished bodies, ${refused} refused: ${before.toFixed(0)} MB, then ${resident().toFixed(0)} MB`);
    assert.ok(resident() - before < 250, `${before} MB, then ${resident()} MB`);
    assert.equal((await server.ask("GET", MAPS)).status, 200);
    for (const one of sockets) one.destroy();
  });

  test("a thousand connections that say nothing do not keep others out", async () => {
    const before = resident();
    const idle = await Promise.all(
      Array.from({ length: 1000 }, (_, index) =>
        dial(index % 2 === 0 ? { port, host: "127.0.0.1" } : { path: socket }),
      ),
    );
    const began = performance.now();
    assert.equal((await server.ask("GET", MAPS)).status, 200);
    assert.equal(await ask("/version"), 200);
    assert.ok(performance.now() - began < 2000);
    assert.ok(resident() - before < 100, `${before} MB, then ${resident()} MB`);
    for (const one of idle) one.destroy();
  });
});
