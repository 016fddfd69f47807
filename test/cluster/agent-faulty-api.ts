/** An agent behind a way to the API server that is slow, refuses, breaks and forgets. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { FaultyApi } from "../support/faulty-api.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

skipWithoutCluster();

describe("an agent behind a bad way to its API server", () => {
  let site: ClusterSite;
  let api: FaultyApi;
  let agent: Program;
  const subject = { commonName: "system:node:node-a", organizations: ["system:nodes"] };
  before(async () => {
    site = await ClusterSite.start({ controllers: true, signingDuration: "1m0s" });
    api = await FaultyApi.start(site.plane.url, site.plane.authority, site.plane.authority.client(subject));
    agent = await site.join([`--api-servers=${api.url}`]);
    await site.nodeReady();
  });
  afterEach(async () => {
    api.fault = () => undefined;
    assert.ok(!agent.isOver, agent.stderr.slice(-3000));
    await site.clear();
  });
  after(async () => {
    await api?.stop();
    await site?.close();
  });

  const bound = (name: string, spec: object = {}): Pod => site.bound(name, spec);
  const remove = (...names: readonly string[]): Promise<void> => site.removePods(...names);
  const isWatch = (path: string): boolean => path.includes("watch=");

  test("every call takes two seconds: pods come and go all the same, and the lease is kept", async () => {
    api.fault = ({ path }) => (isWatch(path) ? undefined : { kind: "delay", ms: 2000 });
    site.apply(bound("slow"));
    await site.podReady("slow");
    await site.renewed();
    await remove("slow");
  });

  test("429 with Retry-After is waited for", async () => {
    const refused = new Map<string, number>();
    api.fault = ({ method, path }) => {
      const key = `${method} ${path}`;
      const times = refused.get(key) ?? 0;
      refused.set(key, times + 1);
      return times === 0 && !isWatch(path)
        ? { kind: "answer", status: 429, headers: { "retry-after": "1" } }
        : undefined;
    };
    site.apply(bound("later"));
    await site.podReady("later");
    await remove("later");
    assert.ok([...refused.values()].some((times) => times > 1));
  });

  test("half of all calls answer 500: no status is lost", async () => {
    // Every second one of each kind: every second one of all would always meet the same, when others come in pairs.
    const calls = new Map<string, number>();
    api.fault = ({ method, path }) => {
      const key = `${method} ${path}`;
      const count = calls.get(key) ?? 0;
      calls.set(key, count + 1);
      return !isWatch(path) && count % 2 === 0 ? { kind: "answer", status: 500 } : undefined;
    };
    site.apply(bound("unlucky"));
    await site.podReady("unlucky");
    await remove("unlucky");
  });

  test("a server that has just started answers 404 for pods that it has not loaded: none stays behind", async () => {
    const refused = new Map<string, number>();
    api.fault = ({ method, path }) => {
      if (!path.includes("/pods/unloaded") || (method !== "PATCH" && method !== "DELETE")) return undefined;
      const times = refused.get(method) ?? 0;
      refused.set(method, times + 1);
      return times < 2 ? { kind: "answer", status: 404 } : undefined;
    };
    site.apply(bound("unloaded"));
    await site.podReady("unloaded");
    await remove("unloaded");
    for (const method of ["PATCH", "DELETE"]) assert.ok((refused.get(method) ?? 0) > 2, JSON.stringify([...refused]));
  });

  test("connections are cut again and again while pods come: each is seen once", async () => {
    const names = Array.from({ length: 6 }, (_, at) => `cut-${at}`);
    for (const name of names) {
      site.apply(bound(name));
      api.cut();
      await pause(200);
    }
    for (const name of names) await site.podReady(name);
    const tasks = await site.tasks();
    assert.equal(tasks.length, 2 * names.length);
    await remove(...names);
  });

  test("watches that answer with garbage, or with half an event, lose no pod and double none", async () => {
    const nonsense = [
      "<html>not here</html>\n",
      '{"type":"ADDED","object":{"kind":"Pod"}}\n',
      '{"type":"MODIFIED","obj',
    ];
    const answers = new Map<string, number>();
    api.fault = ({ path }) => {
      if (!isWatch(path)) return undefined;
      const [kind = ""] = path.split("?");
      const times = answers.get(kind) ?? 0;
      answers.set(kind, times + 1);
      const body = nonsense[times];
      return body === undefined ? undefined : { kind: "answer", status: 200, body };
    };
    site.apply(bound("early"));
    const early = await site.podReady("early");
    api.cut();
    site.apply(bound("late"));
    await site.podReady("late");
    assert.ok((answers.get("/api/v1/pods") ?? 0) >= nonsense.length, JSON.stringify([...answers]));
    const tasks = await site.tasks();
    assert.equal(tasks.length, 4);
    const id = early.status?.containerStatuses?.[0]?.containerID;
    assert.equal((await site.lookAtPod("early"))?.status?.containerStatuses?.[0]?.containerID, id);
    await remove("early", "late");
  });

  test("a server that is gone: the next one in the list is asked", async () => {
    const second = await FaultyApi.start(site.plane.url, site.plane.authority, site.plane.authority.client(subject));
    try {
      await agent.end("SIGTERM");
      agent = await site.join([`--api-servers=${second.url},${api.url}`]);
      site.apply(bound("first"));
      await site.podReady("first");
      await second.stop();
      site.apply(bound("other"));
      await site.podReady("other");
      await remove("first", "other");
    } finally {
      await second.stop().catch(() => undefined);
    }
  });

  test("400 objects are followed on this node while the lease is renewed on time", async () => {
    await agent.end("SIGTERM");
    agent = await site.join();
    const names = Array.from({ length: 400 }, (_, at) => `map-${at}`);
    const maps = names.map((name) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { a: "b" } }));
    site.create(maps);
    const pods = Array.from({ length: 4 }, (_, at) => {
      const own = names.slice(at * 100, at * 100 + 100);
      const sources = own.map((name) => ({ configMap: { name, items: [{ key: "a", path: name }] } }));
      return bound(`reader-${at}`, { volumes: [{ name: "all", projected: { sources } }] });
    });
    site.create(pods);
    for (const { metadata } of pods) await site.podReady(metadata.name ?? "");
    const times: string[] = [];
    for (let at = 0; at < 5; at++) times.push(await site.renewed());
    const gaps = times.slice(1).map((time, at) => Date.parse(time) - Date.parse(times[at] ?? ""));
    // Due every two seconds; a lease of eight seconds is lost after more than that.
    for (const gap of gaps) assert.ok(gap < 8000, `renewed after ${gap} ms`);
    await remove(...pods.map(({ metadata }) => metadata.name ?? ""));
  });

  const pairs = (pki: string): string[] => readdirSync(pki).filter((name) => /^kubelet-client-\d/.test(name));

  test("an agent with a bootstrap token runs its own pods until the server is there, joins, and renews in time", async (t) => {
    await agent.end("SIGTERM");
    await site.plane.allowBootstrap();
    const way = await TcpProxy.start(Number(new URL(site.plane.url).port));
    t.after(() => way.stop());
    await way.stop();
    const pki = join(site.dir, "pki");
    const manifest = join(site.manifests, "alone.json");
    writeFileSync(manifest, JSON.stringify(testPod("alone")));
    const tasks = async (): Promise<number> => (await site.tasks()).length;
    const others = await tasks();
    agent = await site.launch([
      ...[
        `--bootstrap-kubeconfig=${site.plane.writeBootstrapKubeconfig("bootstrap", way.url)}`,
        `--kubeconfig=${join(site.dir, "joined")}`,
      ],
      "--rotate-certificates",
    ]);
    await until("its own pod runs", async () => (await tasks()) === others + 2, {
      limitMs: 90_000,
      seen: () => agent.stderr.slice(-2000),
    });
    await way.listen();
    await site.podReady(`alone-${site.nodeName}`);
    site.apply(bound("joined"));
    await site.podReady("joined");
    assert.ok(pairs(pki).length >= 1);
    for (const name of pairs(pki)) assert.equal(statSync(join(pki, name)).mode & 0o777, 0o600);
    const before = pairs(pki).length;
    await until("another certificate", () => pairs(pki).length > before, {
      limitMs: 90_000,
      seen: () => agent.stderr.slice(-2000),
    });
    await site.renewed();
    unlinkSync(manifest);
    await remove("joined");
    await site.podGone(`alone-${site.nodeName}`);
  });

  test("a certificate that the kubeconfig itself holds is replaced by one of the agent's own", async () => {
    await agent.end("SIGTERM");
    const pki = join(site.dir, "own");
    agent = await site.join(["--rotate-certificates", `--cert-dir=${pki}`]);
    await until("a second pair", () => existsSync(pki) && pairs(pki).length >= 2, {
      limitMs: 90_000,
      seen: () => agent.stderr.slice(-2000),
    });
    const current = (): X509Certificate => new X509Certificate(readFileSync(join(pki, "kubelet-client-current.pem")));
    // Those that the test itself writes live for a day. The link is turned after the pair was written.
    await until("the link points to it", () => Date.parse(current().validTo) < Date.now() + 600_000, {
      seen: () => current().validTo,
    });
    assert.equal(current().subject.split("\n").at(-1), `CN=system:node:${site.nodeName}`);
    await site.renewed();
  });
});
