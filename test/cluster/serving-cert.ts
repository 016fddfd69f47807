/** serverTLSBootstrap on a real control plane: no certificate without an approval, one with it, the next in time. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { connect, type PeerCertificate, type TLSSocket } from "node:tls";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster } from "../support/cluster-site.ts";
import { freePort } from "../support/free-port.ts";
import { metricProblems } from "../support/metric-names.ts";

skipWithoutCluster();

interface Request {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly signerName: string; readonly username: string; readonly usages: readonly string[] };
  readonly status?: { readonly conditions?: readonly { readonly type: string }[]; readonly certificate?: string };
}

describe("a serving certificate of the cluster", () => {
  let site: ClusterSite;
  let port: number;

  /** Requests for serving certificates that nobody has decided on. */
  const open = (): Request[] =>
    site
      .get<{ items: Request[] }>("certificatesigningrequests")
      .items.filter(({ spec }) => spec.signerName === "kubernetes.io/kubelet-serving")
      .filter(({ status }) => (status?.conditions ?? []).length === 0);
  const next = (): Promise<Request> =>
    until("the agent asks for a certificate", () => open()[0], {
      limitMs: 90_000,
      seen: () => site.kubectl("get", "certificatesigningrequests"),
    });
  const approveNext = async (): Promise<Request> => {
    const request = await next();
    site.kubectl("certificate", "approve", request.metadata.name);
    return request;
  };
  /** A connection that believes only the cluster's authority. */
  const dial = (): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const socket = connect({
        host: "127.0.0.1",
        port,
        ca: readFileSync(join(site.plane.dir, "pki/ca.crt")),
        // The node's addresses are in the certificate, loopback is not.
        checkServerIdentity: () => undefined,
      });
      socket.on("error", reject).on("secureConnect", () => resolve(socket));
    });
  const shown = async (): Promise<PeerCertificate> => {
    const socket = await dial();
    const certificate = socket.getPeerCertificate();
    socket.destroy();
    return certificate;
  };

  before(async () => {
    site = await ClusterSite.start({ controllers: true, signingDuration: "1m0s" });
    port = await freePort();
    const authority = join(site.plane.dir, "pki/ca.crt");
    await site.join(["--rotate-server-certificates", `--client-ca-file=${authority}`, `--port=${port}`]);
    await until("the node is there", () => site.node(), { limitMs: 90_000 });
  });
  after(() => site?.close());

  test("as long as nobody approves, every handshake fails and the node is there all the same", async () => {
    await next();
    await assert.rejects(dial());
    assert.ok(site.node());
  });

  test("once approved it is used, with the node's name and addresses", async () => {
    const { spec } = await approveNext();
    assert.equal(spec.username, `system:node:${site.nodeName}`);
    assert.deepEqual([...spec.usages].sort(), ["digital signature", "server auth"]);
    const certificate = await until("it is served", () => shown().catch(() => undefined));
    assert.equal(certificate.subject.CN, `system:node:${site.nodeName}`);
    assert.equal(certificate.subject.O, "system:nodes");
    const address = site.node()?.status?.addresses?.find(({ type }) => type === "InternalIP")?.address ?? "";
    assert.ok(certificate.subjectaltname?.includes(`IP Address:${address}`), certificate.subjectaltname);
    assert.ok(certificate.subjectaltname?.includes(`DNS:${site.nodeName}`), certificate.subjectaltname);
    const raw = (path: string): string => site.kubectl("get", "--raw", `/api/v1/nodes/${site.nodeName}/proxy${path}`);
    assert.equal(raw("/healthz"), "ok");
    const metrics = raw("/metrics");
    assert.match(metrics, /^kubelet_certificate_manager_server_ttl_seconds \d+$/m);
    assert.deepEqual(metricProblems(metrics, ["always", "cluster", "serving CSR"]), []);
  });

  test("before it ends the next one comes, and a connection that stands goes on", async () => {
    const { serialNumber } = await shown();
    // A connection without a request is closed after 30 s: it begins when the next certificate is near.
    await next();
    const standing = await dial();
    let heard = "";
    standing.on("data", (chunk: Buffer) => (heard += chunk.toString()));
    await approveNext();
    const isAnother = (): Promise<boolean> =>
      shown().then(
        (now) => now.serialNumber !== serialNumber,
        () => false,
      );
    await until("another one is served", isAnother, { limitMs: 60_000 });
    standing.write("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    await once(standing, "close");
    // Nobody showed a certificate of a client on it: an answer is what counts.
    assert.match(heard, /^HTTP\/1\.1 (200|401) /);
  });
});
