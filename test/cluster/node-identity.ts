import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  ApiError,
  bootstrap,
  CertificateRotation,
  CertStore,
  clientCertificate,
  isKubeconfigUsable,
  type KubeApi,
  loadKubeconfig,
  type StoredPair,
} from "../../src/adapters/kubeapi/index.ts";
import { CONFIG_MAPS, LEASES, NODES, PODS, SECRETS, SERVICES } from "../../src/adapters/kubeapi/resources.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { fixed } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import { until } from "../contract/kubeapi-suite.ts";
import { skipWithoutControlPlane, TestControlPlane } from "../support/control-plane.ts";

skipWithoutControlPlane();

// What a node may do on a real API server, and how it gets to be one: token, request, certificate, rotation.

const never = { signal: manyListeners().signal };
const NODE = "worker-1";
const namespace = "default";

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "ok",
    (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
  );
}

/** A 403 just after the binding is transient: the server's own view of who needs what follows its watch. */
async function allowed<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "Forbidden" || tries > 300) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

describe("a node on a real control plane", () => {
  let plane: TestControlPlane;
  let admin: KubeApi;
  let dir: string;
  const clock = new SystemClock();
  before(async () => {
    plane = await TestControlPlane.start({ controllers: true });
    admin = plane.clients().calls;
    dir = await mkdtemp(join(tmpdir(), "kts-node-"));
    await plane.allowBootstrap();
  });
  after(async () => {
    await plane?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  const paths = () => ({ directory: join(dir, "pki"), kubeconfig: join(dir, "kubeconfig") });
  const nodeApi = async (): Promise<KubeApi> =>
    plane.clientsOf(await loadKubeconfig(paths().kubeconfig, { ...never, clock })).calls;

  test("bootstrap: the token becomes a certificate, and a kubeconfig that kubectl reads, too", async () => {
    const config = await loadKubeconfig(plane.writeBootstrapKubeconfig(), { ...never, clock });
    const api = plane.clientsOf(config).calls;
    const { directory, kubeconfig } = paths();
    const store = new CertStore(clock, { directory, prefix: "kubelet-client" });
    assert.equal(await isKubeconfigUsable(kubeconfig, { ...never, clock }), false);
    const options = { nodeName: NODE, directory, kubeconfig, config, ...never };
    await allowed(() => bootstrap({ api, store, clock, log: silent }, options));
    assert.equal(await isKubeconfigUsable(kubeconfig, { ...never, clock }), true);
    assert.equal(statSync(kubeconfig).mode & 0o777, 0o600);
    assert.equal(statSync(store.currentPath).mode & 0o777, 0o600);
    assert.match(plane.kubectl("--kubeconfig", kubeconfig, "auth", "whoami"), /system:node:worker-1/);
  });

  test("the node registers itself, holds its lease and reads only what is its own", async () => {
    const api = await nodeApi();
    const node = await api.create(NODES, { object: { metadata: { name: NODE }, spec: {} } }, never);
    const body = { metadata: { uid: node.metadata.uid }, status: { capacity: { pods: "110" } } };
    const change = { name: NODE, type: "strategic", subresource: "status", body } as const;
    assert.deepEqual((await api.patch(NODES, change, never)).status?.capacity, { pods: "110" });
    const lease = { metadata: { name: NODE }, spec: { holderIdentity: NODE, leaseDurationSeconds: 40 } };
    await allowed(() => api.create(LEASES, { namespace: "kube-node-lease", object: lease }, never));
    assert.equal(await codeOf(api.list(PODS, { fieldSelector: `spec.nodeName=${NODE}` }, never)), "ok");
    assert.equal(await codeOf(api.list(PODS, {}, never)), "Forbidden");
    assert.equal(await codeOf(api.get(NODES, { name: "other" }, never)), "Forbidden");
    assert.equal(await codeOf(api.list(SECRETS, { namespace }, never)), "Forbidden");
    assert.equal(await codeOf(api.list(SERVICES, {}, never)), "ok");
    assert.equal(await codeOf(api.delete(NODES, { name: NODE }, never)), "Forbidden");
    await admin.get(NODES, { name: NODE }, never);
  });

  test("objects and tokens of a pod are there once it is bound to the node", async () => {
    const api = await nodeApi();
    const object = { metadata: { name: "settings" }, data: { a: "1" } };
    await admin.create(CONFIG_MAPS, { namespace, object }, never);
    const at = { namespace, name: "settings" };
    assert.equal(await codeOf(api.get(CONFIG_MAPS, at, never)), "Forbidden");
    await until(
      "the default service account",
      () => plane.kubectl("get", "serviceaccounts", "-o", "name").includes("default"),
      60_000,
    );
    const pod = await admin.create(
      PODS,
      {
        namespace,
        object: {
          metadata: { name: "web" },
          spec: {
            nodeName: NODE,
            containers: [{ name: "c", image: "x", envFrom: [{ configMapRef: { name: "settings" } }] }],
          },
        },
      },
      never,
    );
    assert.deepEqual((await allowed(() => api.get(CONFIG_MAPS, at, never))).data, { a: "1" });
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "web", uid: pod.metadata.uid };
    const spec = { audiences: [], expirationSeconds: 3607, boundObjectRef };
    const account = { namespace, name: "default" };
    const token = await allowed(() => api.createToken(account, { metadata: {}, spec }, never));
    assert.ok(token.status?.token);
    const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
    const body = { metadata: { uid: pod.metadata.uid }, status };
    const change = { namespace, name: "web", type: "strategic", subresource: "status", body } as const;
    assert.equal((await api.patch(PODS, change, never)).status?.phase, "Running");
    const stale = { ...change, body: { ...body, metadata: { uid: "00000000-0000-0000-0000-000000000000" } } };
    assert.match(await codeOf(api.patch(PODS, stale, never)), /^(Conflict|Invalid)$/);
    const wrong = { namespace, name: "web", uid: "00000000-0000-0000-0000-000000000000", graceSeconds: 0 };
    assert.equal(await codeOf(api.delete(PODS, wrong, never)), "Conflict");
    await api.delete(PODS, { ...wrong, uid: pod.metadata.uid ?? "" }, never);
    assert.equal(await codeOf(admin.get(PODS, { namespace, name: "web" }, never)), "NotFound");
  });

  test("a node renews its own certificate, and the running client takes it over", async (t) => {
    const { directory } = paths();
    const api = await nodeApi();
    const store = new CertStore(clock, { directory, prefix: "kubelet-client" });
    const before = await store.load();
    // A lifetime that is over soon, as seen by the rotation: everything else is real.
    const hasty = { load: async () => ({ ...(await store.load()), notAfter: 0 }), save: store.save.bind(store) };
    const controller = manyListeners();
    const rotated = await new Promise<StoredPair>((resolve) => {
      const rotation = new CertificateRotation(
        // Only these two methods are used.
        { api: () => api, store: hasty as unknown as CertStore, clock, log: silent },
        {
          spec: fixed(clientCertificate(NODE)),
          onRotated: (pair) => {
            controller.abort();
            resolve(pair);
          },
        },
      );
      const running = rotation.run(controller);
      t.after(() => running);
    });
    assert.notEqual(rotated.certificate, before?.certificate);
    assert.equal((await store.load())?.certificate, rotated.certificate);
    assert.equal(await codeOf((await nodeApi()).get(NODES, { name: NODE }, never)), "ok");
  });

  test("an expired certificate is Unauthorized", async () => {
    const subject = { commonName: `system:node:${NODE}`, organizations: ["system:nodes"] };
    const { calls } = plane.clientsOf(plane.config(subject, -60_000));
    assert.equal(await codeOf(calls.get(NODES, { name: NODE }, never)), "Unauthorized");
  });
});
