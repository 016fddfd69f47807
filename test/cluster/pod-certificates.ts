/** Certificates of pods on a real API server, with the node's own rights; this suite is the signer. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import type { PodCertificateRequest } from "../../src/adapters/kubeapi/index.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster } from "../support/cluster-site.ts";

skipWithoutCluster();

const SIGNER = "example.com/test";
const GATE = "--feature-gates=PodCertificateRequest=true";

describe("certificates of pods", () => {
  let site: ClusterSite;
  let agent: Program;
  before(async () => {
    const apiServerArgs = [GATE, "--runtime-config=certificates.k8s.io/v1beta1=true"];
    site = await ClusterSite.start({ controllers: true, apiServerArgs });
    agent = await site.join([GATE]);
    await site.nodeReady();
    const ca = ["req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=test", "-days", "2"];
    execFileSync("openssl", [...ca, "-keyout", file("ca.key"), "-out", file("ca.crt")], { stdio: "pipe" });
  });
  after(() => site?.close());
  afterEach(() => site.clear());

  const file = (name: string): string => join(site.dir, name);
  const apply = (name: string, keyType = "ECDSAP256"): Pod => {
    const podCertificate = {
      signerName: SIGNER,
      keyType,
      maxExpirationSeconds: 172_800,
      credentialBundlePath: "bundle.pem",
      keyPath: "key.pem",
      certificateChainPath: "chain.pem",
      userAnnotations: { "example.com/word": "given" },
    };
    const volumes = [{ name: "tls", projected: { sources: [{ podCertificate }] } }];
    site.apply(site.bound(name, { volumes, securityContext: { runAsUser: 1000 } }));
    const pod = site.pod(name);
    assert.ok(pod);
    return pod;
  };
  const requests = (pod: Pod): PodCertificateRequest[] =>
    site
      .get<{ items: PodCertificateRequest[] }>("podcertificaterequests")
      .items.filter(({ spec }) => spec.podUID === pod.metadata.uid);
  const pending = (pod: Pod, not?: string): Promise<PodCertificateRequest> =>
    until("a request", () => requests(pod).find(({ metadata }) => metadata.name !== not), {
      limitMs: 90_000,
      seen: () => agent.stderr.slice(-3000),
    });
  const decide = (request: PodCertificateRequest, status: object): void => {
    const { name = "" } = request.metadata;
    const patch = JSON.stringify({ status });
    site.kubectl("patch", "podcertificaterequest", name, "--subresource=status", "--type=merge", "-p", patch);
  };
  const condition = (type: string, reason: string): object => ({
    conditions: [
      { type, status: "True", reason, message: "by the test", lastTransitionTime: new Date().toISOString() },
    ],
  });
  const seconds = (wall: number): string => `${new Date(wall).toISOString().slice(0, 19)}Z`;
  const issue = (request: PodCertificateRequest): string => {
    writeFileSync(file("request.der"), Buffer.from(request.spec.stubPKCS10Request, "base64"));
    const args = ["x509", "-req", "-inform", "DER", "-in", file("request.der"), "-days", "1"];
    const chain = execFileSync(
      "openssl",
      [...args, "-CA", file("ca.crt"), "-CAkey", file("ca.key"), "-set_serial", "7"],
      {
        encoding: "utf8",
        stdio: "pipe",
      },
    );
    const { validFrom, validTo } = new X509Certificate(chain);
    decide(request, {
      ...condition("Issued", "Issued"),
      certificateChain: chain,
      notBefore: seconds(Date.parse(validFrom)),
      beginRefreshAt: seconds(Date.parse(validFrom) + 12 * 3_600_000),
      notAfter: seconds(Date.parse(validTo)),
    });
    return chain;
  };
  const path = (pod: Pod, name: string): string =>
    join(site.root, "pods", pod.metadata.uid ?? "", "volumes/kubernetes.io~projected/tls", name);
  const read = (pod: Pod, name: string): string => readFileSync(path(pod, name), "utf8");
  const thumb = (pem: string): string => createPublicKey(pem).export({ type: "spki", format: "pem" }).toString();

  for (const keyType of ["ECDSAP256", "ED25519", "RSA3072"]) {
    test(`a pod waits for its certificate with a key of type ${keyType}, and has it with the key`, async () => {
      const pod = apply("web", keyType);
      const request = await pending(pod);
      assert.equal(request.spec.nodeName, site.nodeName);
      assert.deepEqual(request.spec.unverifiedUserAnnotations, { "example.com/word": "given" });
      const chain = issue(request);
      await site.podReady("web");
      assert.equal(read(pod, "chain.pem"), chain);
      assert.equal(read(pod, "bundle.pem"), read(pod, "key.pem") + chain);
      const key = createPrivateKey(read(pod, "key.pem")).export({ type: "pkcs8", format: "pem" }).toString();
      assert.equal(thumb(key), thumb(chain));
      const { mode, uid } = statSync(path(pod, "key.pem"));
      assert.deepEqual([mode & 0o777, uid], [0o600, 1000]);
      await site.removePods("web");
    });
  }

  test("after a restart of the agent a new certificate takes the place of the old one, which stays until then", async () => {
    const pod = apply("long");
    const first = await pending(pod);
    issue(first);
    await site.podReady("long");
    const before = read(pod, "bundle.pem");
    await agent.end("SIGKILL");
    agent = await site.join([GATE]);
    const second = await pending(pod, first.metadata.name);
    assert.equal(read(pod, "bundle.pem"), before);
    issue(second);
    await until("the new one", () => {
      try {
        return read(pod, "bundle.pem") !== before;
      } catch {
        // It is being replaced.
        return false;
      }
    });
    assert.equal(thumb(read(pod, "key.pem")), thumb(read(pod, "chain.pem")));
    await site.removePods("long");
  });

  test("a request that the signer denies keeps the pod waiting, with an event", async () => {
    const pod = apply("denied");
    decide(await pending(pod), condition("Denied", "UnsupportedKeyType"));
    await until("the event", () =>
      site
        .get<{ items: { involvedObject: { name: string }; message: string }[] }>("events")
        .items.some(
          ({ involvedObject, message }) =>
            involvedObject.name === "denied" && /was denied, reason="UnsupportedKeyType"/.test(message),
        ),
    );
    assert.equal(site.pod("denied")?.status?.phase, "Pending");
    await site.removePods("denied");
  });
});
