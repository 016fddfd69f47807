/** What the cluster tells the runtime through the agent: addresses of pods, runtime classes, passwords of registries. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { findInPath } from "../../src/adapters/embedded/daemon.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, FOREVER, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { TestAuthority } from "../support/control-plane-pki.ts";
import { REGISTRY_USER, TestRegistry, whyNoRegistry } from "../support/registry.ts";
import { fillingLayer, shellLayer } from "../support/registry-image.ts";
import { RegistryProxy } from "../support/registry-proxy.ts";

skipWithoutCluster();
const MIB = 1024 * 1024;
const noRegistry = whyNoRegistry() ?? false;

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
      limitMs: 90_000,
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
      await until("the file has the new word", () => readNow(file) === "after");
      await remove(name);
    });
  }

  describe("images behind a password", { skip: noRegistry }, () => {
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
      site.apply(pulling("by-node", image));
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

    describe("on the node already", () => {
      let image: string;
      before(async () => {
        image = await registry.push(site.containerd, TEST_IMAGES.busybox, "private/shared");
        pullSecret("first", REGISTRY_USER.password);
        site.apply(pulling("owner", image, "first"));
        await site.podReady("owner");
      });
      after(() => remove("owner"));

      test("are not free for a pod without a right credential", async () => {
        pullSecret("unfit", "not-the-password");
        site.apply(pulling("nothing-to-show", image));
        site.apply(pulling("wrong-to-show", image, "unfit"));
        site.apply(neverPulling("never-pulls", image, "unfit"));
        for (const name of ["nothing-to-show", "wrong-to-show"]) await site.podIs(name, "cannot pull", isPullFailing);
        const never = await site.podIs(
          "never-pulls",
          "does not get the image",
          ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === "ErrImageNeverPull",
        );
        assert.match(JSON.stringify(never.status), /is not present with pull policy of Never/);
        await remove("nothing-to-show", "wrong-to-show", "never-pulls");
      });

      test("are used by pods with the same secret, or with the same credential in another one", async () => {
        pullSecret("second", REGISTRY_USER.password);
        site.apply(neverPulling("same", image, "first"));
        site.apply(neverPulling("equal", image, "second"));
        await Promise.all([site.podReady("same"), site.podReady("equal")]);
        await until("it is said why", () =>
          /already present on machine and can be accessed by the pod/.test(site.kubectl("get", "events")),
        );
        await remove("same", "equal");
      });

      test("are recorded without their credentials, and the record outlives the agent", async () => {
        await agent.end("SIGKILL");
        agent = await site.join();
        site.apply(neverPulling("later", image, "first"));
        await site.podReady("later");
        const { uid } = site.get<{ metadata: { uid: string } }>("secret", "first").metadata;
        const text = records();
        assert.match(
          text,
          new RegExp(`"uid":"${uid}","namespace":"default","name":"first","credentialHash":"[0-9a-f]{64}"`),
        );
        assert.ok(!text.includes(REGISTRY_USER.password));
        await remove("later");
      });
    });

    test("are pulled by a plugin that gets a token of the pod's service account, for that account only", async () => {
      const image = await registry.push(site.containerd, TEST_IMAGES.busybox, "private/account");
      const seen = join(site.dir, "request");
      await agent.end("SIGTERM");
      agent = await site.join([...plugin(seen), "--v=10"]);
      allowAudience("registry.test");
      for (const name of ["robot", "stranger"]) site.kubectl("create", "serviceaccount", name);
      site.kubectl("annotate", "serviceaccount", "robot", "registry.test/role=puller");
      const by = (name: string, serviceAccountName: string): Pod =>
        testPod(name, { ...pulling(name, image).spec, serviceAccountName });
      site.apply(by("by-account", "robot"));
      await site.podReady("by-account");
      const request = JSON.parse(readFileSync(seen, "utf8")) as Record<string, unknown>;
      assert.equal(request["image"], `${registry.host}/private/account`);
      assert.deepEqual(request["serviceAccountAnnotations"], { "registry.test/role": "puller" });
      const token = String(request["serviceAccountToken"]);
      const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as object;
      assert.match(JSON.stringify(claims), /"aud":\["registry.test"\].*"name":"by-account".*"name":"robot"/);
      // Its service account has no such annotation, so that the plugin is not asked.
      site.apply(by("by-stranger", "stranger"));
      await site.podIs("by-stranger", "cannot pull", isPullFailing);
      site.apply(by("by-colleague", "robot"));
      await site.podReady("by-colleague");
      assert.match(records(), /"kubernetesServiceAccounts":\[\{"uid":"[^"]+","namespace":"default","name":"robot"\}\]/);
      const words = [agent.stderr, records(), site.kubectl("get", "events"), site.kubectl("get", "pods", "-o", "json")];
      for (const secret of [token, REGISTRY_USER.password]) assert.ok(!words.join().includes(secret));
      await remove("by-account", "by-stranger", "by-colleague");
    });

    /** A plugin that answers with the registry's password, and the flags for it. */
    const plugin = (seen: string): readonly string[] => {
      const bin = join(site.dir, "bin");
      mkdirSync(bin);
      const apiVersion = "credentialprovider.kubelet.k8s.io/v1";
      const auth = { [registry.host]: REGISTRY_USER };
      const answer = {
        kind: "CredentialProviderResponse",
        apiVersion,
        cacheKeyType: "Image",
        cacheDuration: "1h",
        auth,
      };
      writeFileSync(join(bin, "helper"), `#!/bin/sh\ncat > ${seen}\necho '${JSON.stringify(answer)}'\n`);
      chmodSync(join(bin, "helper"), 0o755);
      const tokenAttributes = {
        serviceAccountTokenAudience: "registry.test",
        cacheType: "ServiceAccount",
        requireServiceAccount: true,
        requiredServiceAccountAnnotationKeys: ["registry.test/role"],
      };
      const matchImages = [`${registry.host}/private/account`];
      const provider = { name: "helper", apiVersion, matchImages, defaultCacheDuration: "1h", tokenAttributes };
      const head = { apiVersion: "kubelet.config.k8s.io/v1", kind: "CredentialProviderConfig" };
      const config = join(site.dir, "providers.yaml");
      // JSON is YAML.
      writeFileSync(config, JSON.stringify({ ...head, providers: [provider] }));
      return [`--image-credential-provider-config=${config}`, `--image-credential-provider-bin-dir=${bin}`];
    };

    /** Nodes may request tokens for this audience, and read service accounts of their pods. */
    const allowAudience = (audience: string): void => {
      const rules = [
        { apiGroups: [""], resources: [audience], verbs: ["request-serviceaccounts-token-audience"] },
        { apiGroups: [""], resources: ["serviceaccounts"], verbs: ["get"] },
      ];
      const metadata = { name: "node-audience" };
      const rbac = "rbac.authorization.k8s.io";
      const roleRef = { apiGroup: rbac, kind: "ClusterRole", name: metadata.name };
      const subjects = [{ apiGroup: rbac, kind: "Group", name: "system:nodes" }];
      site.apply({ apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata, rules });
      site.apply({ apiVersion: `${rbac}/v1`, kind: "ClusterRoleBinding", metadata, roleRef, subjects });
    };

    const records = (): string => {
      const directory = join(site.root, "image_manager/pulled");
      return readdirSync(directory)
        .map((name) => readFileSync(join(directory, name), "utf8"))
        .join("");
    };

    const pullSecret = (name: string, password: string): void => {
      const words = [`--docker-server=${registry.host}`, `--docker-username=${REGISTRY_USER.username}`];
      site.kubectl("create", "secret", "docker-registry", name, ...words, `--docker-password=${password}`);
    };
  });

  test("a pull that waits for its turn says so in the pod's status, without an error", {
    skip: noRegistry,
  }, async (t) => {
    const registry = await TestRegistry.start(join(site.dir, "queued"), new TestAuthority());
    t.after(() => registry.stop());
    const proxy = await RegistryProxy.start(registry);
    t.after(() => proxy.stop());
    const names = ["pulled", "next", "after-next"];
    const busybox = findInPath("busybox", process.env["PATH"]) ?? "";
    for (const name of names) await registry.add(`queue/${name}`, [shellLayer(busybox), fillingLayer(name, 4 * MIB)]);
    // The first pull is held back until the others wait for it.
    const pace = { first: MIB / 64, others: MIB / 4 };
    proxy.fault = ({ path }) => {
      if (!path.includes("/blobs/")) return undefined;
      const of = path.includes("/queue/pulled/") ? "first" : "others";
      return {
        kind: "slow",
        get bytesPerSecond() {
          return pace[of];
        },
      };
    };
    const waiting = ({ status }: Pod) => status?.containerStatuses?.[0]?.state?.waiting;
    for (const [ahead, name] of names.entries()) {
      // Without a token: the Node authorizer may learn of the pod after the agent, and a refused token is a warning.
      const { spec, ...pod } = pulling(name, `${proxy.host}/queue/${name}:1`);
      site.apply({ ...pod, spec: { ...spec, automountServiceAccountToken: false } });
      if (ahead === 0) await until("it is being pulled", () => proxy.sending > 0);
      else {
        const message = `waiting behind ${ahead} ${ahead === 1 ? "pull" : "pulls"}`;
        const waits = await site.podIs(name, message, (one) => waiting(one)?.message === message);
        assert.equal(waiting(waits)?.reason, "ContainerCreating");
        assert.equal(waits.status?.phase, "Pending");
      }
    }
    assert.equal(waiting(site.pod("pulled") ?? testPod("pulled"))?.message, undefined);
    pace.first = MIB;
    await site.podIs("after-next", "moves up", (one) => waiting(one)?.message === "waiting behind 1 pull");
    proxy.heal();
    for (const name of names) assert.equal(waiting(await site.podReady(name)), undefined);
    const events = site.kubectl("get", "events", "--field-selector", "type=Warning", "-o", "json");
    for (const name of names) assert.ok(!events.includes(`"name": "${name}"`), events);
    await remove(...names);
  });

  /** The state directories of runc that know the pod's container. */
  const handlersOf = (pod: Pod): string[] => {
    const id = pod.status?.containerStatuses?.[0]?.containerID?.replace("containerd://", "") ?? "none";
    return ["runc", "runc-second"].filter((name) => existsSync(join(site.containerd.dir, name, "k8s.io", id)));
  };

  const runtimeClass = (name: string, handler: string): void =>
    site.apply({ apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name }, handler });

  const remove = (...names: readonly string[]): Promise<void> => site.removePods(...names);
});

function pulling(name: string, image: string, secret = ""): Pod {
  const container = { name: "main", image, imagePullPolicy: "IfNotPresent", command: FOREVER };
  const imagePullSecrets = secret === "" ? [] : [{ name: secret }];
  return testPod(name, { imagePullSecrets, containers: [container] });
}

function neverPulling(name: string, image: string, secret: string): Pod {
  const { spec, ...pod } = pulling(name, image, secret);
  const containers = spec.containers.map((container) => ({ ...container, imagePullPolicy: "Never" }));
  return { ...pod, spec: { ...spec, containers } };
}

/** Undefined for a file that is being replaced. */
function readNow(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function isPullFailing({ status }: Pod): boolean {
  const reason = status?.containerStatuses?.[0]?.state?.waiting?.reason ?? "";
  return reason === "ErrImagePull" || reason === "ImagePullBackOff";
}
