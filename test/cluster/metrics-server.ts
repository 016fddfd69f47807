/** `kubectl top` through the real metrics-server, which scrapes `/metrics/resource` of this agent. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TestAuthority } from "../support/control-plane-pki.ts";
import { freePort } from "../support/free-port.ts";

skipWithoutCluster();

const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "kubelet-ts");
const given = process.env["METRICS_SERVER_BIN_DIR"] || join(cache, "metrics-server-0.9.0");
const METRICS_SERVER = join(given, "metrics-server");
if (!existsSync(METRICS_SERVER)) {
  process.stdout.write(`no ${METRICS_SERVER} (node scripts/build-metrics-server.mjs)\n`);
  process.exit(77);
}

const MI = 2 ** 20;
/** Holds 24 MiB and uses a tenth of a core. */
const WORK = "dd if=/dev/zero bs=24M count=1 2>/dev/null | sleep 3600 & trap 'exit 0' TERM; while :; do :; done";
const POD = testPod("busy", {
  containers: [
    {
      ...testPod("x").spec.containers[0],
      command: ["/bin/sh", "-c", WORK],
      resources: { limits: { cpu: "100m", memory: "64Mi" }, requests: { cpu: "100m", memory: "32Mi" } },
    },
  ],
});

/** The proxy of the API server proves to the servers behind it who it is, by an authority of its own. */
function writeProxyPki(dir: string): readonly string[] {
  const authority = new TestAuthority();
  const { certificate, key } = authority.client({ commonName: "front-proxy-client" });
  mkdirSync(dir, { recursive: true });
  const write = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text, { mode: 0o600 });
    return join(dir, name);
  };
  return [
    `--requestheader-client-ca-file=${write("front-proxy-ca.crt", authority.certificate)}`,
    `--proxy-client-cert-file=${write("front-proxy-client.crt", certificate)}`,
    `--proxy-client-key-file=${write("front-proxy-client.key", key)}`,
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
  ];
}

describe("kubectl top through the metrics-server", () => {
  const dir = mkdtempSync(join(tmpdir(), "ms-"));
  let site: ClusterSite;
  let server: Program | undefined;

  before(async () => {
    site = await ClusterSite.start({ controllers: true, scheduler: true, apiServerArgs: writeProxyPki(dir) });
    const pki = join(site.plane.dir, "pki");
    await site.join([`--client-ca-file=${join(pki, "ca.crt")}`]);
    await site.nodeReady();
    site.apply(POD);
    const port = await freePort();
    const admin = site.plane.writeKubeconfig("top", { commonName: "top", organizations: ["system:masters"] });
    server = new Program([
      METRICS_SERVER,
      ...["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"].map((name) => `--${name}=${admin}`),
      ...["--bind-address=127.0.0.1", `--secure-port=${port}`, `--cert-dir=${dir}`, "--metric-resolution=10s"],
      "--kubelet-request-timeout=5s",
      ...["--kubelet-insecure-tls", "--kubelet-use-node-status-port", "--kubelet-preferred-address-types=InternalIP"],
      `--kubelet-client-certificate=${join(pki, "kubelet-client.crt")}`,
      `--kubelet-client-key=${join(pki, "kubelet-client.key")}`,
    ]);
    site.apply({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "metrics-server", namespace: "kube-system" },
      spec: { type: "ExternalName", externalName: "localhost", ports: [{ port, protocol: "TCP" }] },
    });
    site.apply({
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: "v1beta1.metrics.k8s.io" },
      spec: {
        group: "metrics.k8s.io",
        version: "v1beta1",
        insecureSkipTLSVerify: true,
        groupPriorityMinimum: 100,
        versionPriority: 100,
        service: { name: "metrics-server", namespace: "kube-system", port },
      },
    });
    await site.podReady("busy");
  });
  after(async () => {
    await server?.end("SIGTERM");
    await site?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /**
   * What kubectl prints, once it is as wanted: the metrics-server needs two scrapes, and one that fails takes the numbers
   * away until the next two.
   */
  const printed = (args: readonly string[], isWanted: (text: string) => boolean = () => true): Promise<string> => {
    let last = "";
    return until(
      `kubectl ${args.join(" ")}`,
      () => {
        assert.ok(server?.isOver === false, server?.stderr.slice(-3000));
        try {
          last = site.kubectl(...args);
          return isWanted(last) && last;
        } catch {
          return undefined;
        }
      },
      { limitMs: 90_000, seen: () => `${last}\n${server?.stderr.slice(-3000)}` },
    );
  };

  it("shows the node with CPU and memory", async () => {
    const [, cpu = "", , memory = ""] =
      /^node-a\s+(\d+)m\s+(\d+)%\s+(\d+)Mi/.exec(await printed(["top", "node", "--no-headers"])) ?? [];
    assert.ok(Number(cpu) > 0 && Number(memory) > 100, `${cpu}m ${memory}Mi`);
  });

  it("shows the pod with what its container is limited to and holds", async () => {
    const row = (text: string): number[] => (/^busy\s+main\s+(\d+)m\s+(\d+)Mi/.exec(text) ?? []).slice(1).map(Number);
    // With a tenth of a core it takes a while to fill its memory.
    const line = await printed(["top", "pod", "busy", "--containers", "--no-headers"], (text) => {
      const [, memory = 0] = row(text);
      return memory >= 20;
    });
    const [cpu = 0, memory = 0] = row(line);
    assert.ok(cpu > 0 && cpu <= 120, line);
    assert.ok(memory <= 64, line);
  });

  it("is what the Metrics API has, with the window that it was measured in", async () => {
    const text = await printed(["get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/busy"]);
    const metrics = JSON.parse(text) as { window: string; containers: { name: string; usage: { memory: string } }[] };
    assert.ok(Number.parseFloat(metrics.window) > 0, metrics.window);
    const [container] = metrics.containers;
    assert.equal(container?.name, "main");
    assert.ok(Number.parseInt(container?.usage.memory ?? "", 10) * 1024 > 20 * MI);
  });
});
