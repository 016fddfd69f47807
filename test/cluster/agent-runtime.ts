/** What the cluster tells the runtime through the agent: addresses of pods, runtime classes, passwords of registries. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, FOREVER, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { REGISTRY_USER, TestRegistry, whyNoRegistry } from "../support/registry.ts";

skipWithoutCluster();

describe("what the cluster tells the runtime", () => {
  let site: ClusterSite;
  let agent: Program;
  before(async () => {
    const handlers = ["second"];
    site = await ClusterSite.start({ controllers: true, scheduler: true }, { handlers, awaitsPodCidr: true });
    agent = await site.join();
  });
  after(() => site?.close());

  test("the node is not ready without a network; the addresses of its pods bring one", async () => {
    const ready = (): { status: string; message?: string } | undefined =>
      site.node()?.status?.conditions?.find(({ type }) => type === "Ready");
    await until("the node says that it has no network", () => /network/i.test(ready()?.message ?? ""), {
      limitMs: 30_000,
      seen: ready,
    });
    assert.equal(ready()?.status, "False");
    const podCIDR = site.containerd.subnet;
    site.kubectl("patch", "node", site.nodeName, "-p", JSON.stringify({ spec: { podCIDR, podCIDRs: [podCIDR] } }));
    await site.nodeReady();
    site.apply(testPod("addressed"));
    const pod = await site.podReady("addressed");
    assert.ok(pod.status?.podIP?.startsWith(podCIDR.slice(0, podCIDR.lastIndexOf(".") + 1)), pod.status?.podIP);
    await remove("addressed");
  });

  test("a pod runs with the handler of its RuntimeClass", async () => {
    runtimeClass("other", "second");
    site.apply(testPod("classed", { runtimeClassName: "other" }));
    site.apply(testPod("plain"));
    const [classed, plain] = [await site.podReady("classed"), await site.podReady("plain")];
    assert.deepEqual(handlersOf(classed), ["runc-second"]);
    assert.deepEqual(handlersOf(plain), ["runc"]);
    await remove("classed", "plain");
  });

  test("a class whose handler the runtime does not have is said in an event, and the pod stays Pending", async () => {
    runtimeClass("broken", "nowhere");
    site.apply(testPod("misled", { runtimeClassName: "broken" }));
    await until("it is said why", () => /FailedCreatePodSandBox[\s\S]*nowhere/.test(site.kubectl("get", "events")));
    assert.equal(site.pod("misled")?.status?.phase, "Pending");
    await remove("misled");
  });

  for (const strategy of ["Get", "Cache"]) {
    test(`${strategy}: a changed ConfigMap reaches its volume also where it is not watched`, async () => {
      const name = `polled-${strategy.toLowerCase()}`;
      const config = { configMapAndSecretChangeDetectionStrategy: strategy, syncFrequency: "1s" };
      await agent.end("SIGTERM");
      agent = await site.join([site.config(config)]);
      // What the node says is how long objects may be kept: here not at all, so that nobody has to wait.
      site.kubectl("annotate", "node", site.nodeName, "node.alpha.kubernetes.io/ttl=0", "--overwrite");
      site.kubectl("create", "configmap", name, "--from-literal=word=before");
      const volumes = [{ name: "c", configMap: { name } }];
      site.apply(testPod(name, { volumes }));
      const pod = await site.podReady(name);
      const file = join(site.root, "pods", pod.metadata.uid ?? "", "volumes/kubernetes.io~configmap/c/word");
      assert.equal(readFileSync(file, "utf8"), "before");
      site.kubectl("patch", "configmap", name, "-p", '{"data":{"word":"after"}}');
      await until("the file has the new word", () => readFileSync(file, "utf8") === "after");
      await remove(name);
    });
  }

  describe("images behind a password", { skip: whyNoRegistry() ?? false }, () => {
    let registry: TestRegistry;
    before(async () => {
      registry = await TestRegistry.start(join(site.dir, "registry"));
    });
    after(() => registry?.stop());

    test("are pulled with the pod's pull secret", async () => {
      const image = await registry.push(site.containerd, TEST_IMAGES.busybox, "private/one");
      pullSecret("good", REGISTRY_USER.password);
      site.apply(pulling("lets-in", image, "good"));
      const pod = await site.podReady("lets-in");
      assert.equal(pod.status?.containerStatuses?.[0]?.image, image);
      await remove("lets-in");
    });

    test("are not pulled without one; a missing secret is named, and the pod starts once it is there", async () => {
      const image = await registry.push(site.containerd, TEST_IMAGES.busybox, "private/two");
      site.apply(pulling("kept-out", image, "later"));
      await site.podIs("kept-out", "cannot pull", isPullFailing);
      await until("the secret is named", () =>
        /FailedToRetrieveImagePullSecret[\s\S]*\(later\)/.test(site.kubectl("get", "events")),
      );
      pullSecret("later", REGISTRY_USER.password);
      await site.podReady("kept-out");
      await remove("kept-out");
    });

    test("are pulled with the node's own credentials, which are read without a restart", async () => {
      const image = await registry.push(site.containerd, TEST_IMAGES.busybox, "private/node");
      const auth = Buffer.from(`${REGISTRY_USER.username}:${REGISTRY_USER.password}`).toString("base64");
      const file = join(site.root, "config.json");
      writeFileSync(file, JSON.stringify({ auths: { [registry.host]: { auth } } }), { mode: 0o600 });
      const { imagePullSecrets: _none, ...spec } = pulling("by-node", image, "").spec;
      site.apply({ ...pulling("by-node", image, ""), spec });
      await site.podReady("by-node");
      await remove("by-node");
      rmSync(file);
    });

    test("a wrong password does not do, and never shows", async () => {
      const image = await registry.push(site.containerd, TEST_IMAGES.busybox, "private/three");
      pullSecret("wrong", "not-the-password");
      site.apply(pulling("refused", image, "wrong"));
      const pod = await site.podIs("refused", "cannot pull", isPullFailing);
      const words = JSON.stringify(pod.status) + site.kubectl("get", "events");
      assert.ok(!words.includes("not-the-password"));
      await remove("refused");
    });

    const pullSecret = (name: string, password: string): void => {
      const words = [`--docker-server=${registry.host}`, `--docker-username=${REGISTRY_USER.username}`];
      site.kubectl("create", "secret", "docker-registry", name, ...words, `--docker-password=${password}`);
    };
  });

  /** The state directories of runc that know the pod's container. */
  const handlersOf = (pod: Pod): string[] => {
    const id = pod.status?.containerStatuses?.[0]?.containerID?.replace("containerd://", "") ?? "none";
    return ["runc", "runc-second"].filter((name) => existsSync(join(site.containerd.dir, name, "k8s.io", id)));
  };

  const runtimeClass = (name: string, handler: string): void =>
    site.apply({ apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name }, handler });

  const remove = async (...names: readonly string[]): Promise<void> => {
    site.kubectl("delete", "pod", ...names, "--wait=false");
    for (const name of names) await site.podGone(name);
  };
});

function pulling(name: string, image: string, secret: string): Pod {
  const container = { name: "main", image, imagePullPolicy: "IfNotPresent", command: FOREVER };
  return testPod(name, { imagePullSecrets: [{ name: secret }], containers: [container] });
}

function isPullFailing({ status }: Pod): boolean {
  const reason = status?.containerStatuses?.[0]?.state?.waiting?.reason ?? "";
  return reason === "ErrImagePull" || reason === "ImagePullBackOff";
}
