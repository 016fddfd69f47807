/** An agent whose way to the cluster goes bad without a word: its certificate ends, its connections or clock go wrong. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, isReady, skipWithoutCluster } from "../support/cluster-site.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

skipWithoutCluster();

const HOUR_MS = 3_600_000;
/** Of a certificate that ends soon: a node and a pod become ready before. */
const LIFETIME_MS = 60_000;
const SHIFTED_CLOCK = join(import.meta.dirname, "../support/shifted-clock.cjs");

describe("an agent whose certificate, connections or clock go bad", () => {
  let site: ClusterSite;
  let agent: Program;
  const subject = { commonName: "system:node:node-a", organizations: ["system:nodes"] };
  before(async () => {
    site = await ClusterSite.start({ controllers: true });
  });
  afterEach(async () => {
    assert.ok(!agent.isOver, agent.stderr.slice(-3000));
    await agent.end("SIGTERM");
  });
  after(() => site?.close());

  const bound = (name: string): Pod => site.bound(name);
  const remove = (...names: readonly string[]): Promise<void> => site.removePods(...names);
  const identity = (pod: Pod | undefined): unknown => [
    pod?.status?.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount]),
    pod?.status?.conditions?.find(({ type }) => type === "Ready"),
  ];

  /** A kubeconfig that names its certificate as a file, and what puts another certificate there. */
  const filedIdentity = (): { path: string; issue: (lifetimeMs: number) => void } => {
    const file = (name: string): string => join(site.dir, name);
    const issue = (lifetimeMs: number): void => {
      const { certificate, key } = site.plane.authority.client(subject, lifetimeMs);
      writeFileSync(file("me.pem"), certificate + key, { mode: 0o600 });
    };
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      clusters: [
        {
          name: "c",
          cluster: { server: site.plane.url, "certificate-authority": join(site.plane.dir, "pki/ca.crt") },
        },
      ],
      users: [{ name: "u", user: { "client-certificate": file("me.pem"), "client-key": file("me.pem") } }],
    };
    writeFileSync(file("filed"), JSON.stringify(config));
    return { path: file("filed"), issue };
  };

  test("its certificate ends: what runs goes on, and with the next certificate all converges without a restart", async () => {
    const { path, issue } = filedIdentity();
    issue(LIFETIME_MS);
    const ends = performance.now() + LIFETIME_MS;
    agent = await site.launch([`--kubeconfig=${path}`]);
    await site.nodeReady();
    site.apply(bound("kept"));
    const before = await site.podReady("kept");
    await pause(ends + 2000 - performance.now());
    const last = await site.renewal();
    site.apply(bound("later"));
    await pause(6000);
    assert.equal(await site.renewal(), last, "nobody renews a lease with a certificate that has ended");
    assert.equal(isReady(site.pod("later") ?? bound("later")), false);
    issue(HOUR_MS);
    await site.podReady("later");
    await site.renewed();
    assert.deepEqual(identity(site.pod("kept")), identity(before));
    await remove("kept", "later");
  });

  test("credentials as they were before kubeconfigs: --api-servers and --auth-path", async () => {
    const { issue } = filedIdentity();
    issue(HOUR_MS);
    const path = join(site.dir, "kubernetes_auth");
    const authority = join(site.plane.dir, "pki/ca.crt");
    writeFileSync(path, JSON.stringify({ CAFile: authority, CertFile: "me.pem", KeyFile: "me.pem" }), { mode: 0o600 });
    agent = await site.launch([`--api-servers=${site.plane.url}`, `--auth-path=${path}`]);
    await site.nodeReady();
    site.apply(bound("as-ever"));
    await site.podReady("as-ever");
    await remove("as-ever");
  });

  test("its connections go silent without being closed: it notices, and comes back by others", async () => {
    const proxy = await TcpProxy.start(Number(new URL(site.plane.url).port));
    try {
      agent = await site.join([`--api-servers=${proxy.url}`]);
      await site.nodeReady();
      site.apply(bound("heard"));
      await site.podReady("heard");
      const connections = proxy.connections;
      proxy.freeze();
      site.apply(bound("unheard"));
      await site.podReady("unheard");
      await site.renewed(40_000);
      assert.ok(proxy.connections > connections);
      await remove("heard", "unheard");
    } finally {
      await proxy.stop();
    }
  });

  test("its clock jumps ahead and back: nothing restarts, Ready never flips, the lease is renewed", async () => {
    const file = join(site.dir, "clock");
    const env = { ...process.env, NODE_OPTIONS: `--require=${SHIFTED_CLOCK}`, CLOCK_OFFSET_FILE: file };
    // The node lifecycle controller does not count a renewal that is older than the one before: only a status keeps the
    // node healthy for it after a jump back.
    const often = { nodeStatusUpdateFrequency: "5s", nodeStatusReportFrequency: "5s" };
    agent = await site.join([site.config(often)], { env });
    await site.nodeReady();
    site.apply(bound("steady"));
    const before = await site.podReady("steady");
    for (const [offset, name] of [
      [2 * HOUR_MS, "ahead"],
      [-2 * HOUR_MS, "behind"],
      [0, "right"],
    ] as const) {
      writeFileSync(file, String(offset));
      const said = await until(
        `the lease is renewed by the clock that is ${name}`,
        async () => {
          const at = Date.parse(await site.renewal());
          return Math.abs(at - Date.now() - offset) < 60_000 ? at : undefined;
        },
        { seen: () => agent.stderr.slice(-2000) },
      );
      await until("and again", async () => Date.parse(await site.renewal()) > said);
      site.apply(bound(name));
      await site.podReady(name);
      assert.deepEqual(identity(site.pod("steady")), identity(before));
      await remove(name);
    }
    await remove("steady");
  });
});
