/** An agent on real containerd joins a real control plane: what users, the scheduler and the controllers see of it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Node, Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, FOREVER, isReady, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { freePort } from "../support/free-port.ts";

skipWithoutCluster();

/** For the garbage collector of the cluster, which deletes the pods of a deleted owner, in milliseconds. */
const COLLECT_MS = 120_000;

describe("an agent in a real cluster", () => {
  let site: ClusterSite;
  let agent: Program;
  let apiPort = 0;
  before(async () => {
    site = await ClusterSite.start();
    apiPort = await freePort();
    agent = await site.join([
      ...["--apiserver", `--apiserver-port=${apiPort}`],
      ...["--node-labels=example.com/rack=r1", "--register-with-taints=example.com/new=yes:PreferNoSchedule"],
      ...[`--client-ca-file=${join(site.plane.dir, "pki/ca.crt")}`, "--anonymous-auth=false"],
      ...["--authorization-mode=Webhook", "--authentication-token-webhook"],
    ]);
    await until("the node is ready", () => isNodeReady(site.node()), {
      limitMs: 90_000,
      seen: () => agent.stderr.slice(-3000),
    });
    // The server takes no pod before the controllers have created the account that it runs as.
    const hasAccount = (): boolean => /\/default$/m.test(site.kubectl("get", "serviceaccounts", "-o", "name"));
    await until("the default account", hasAccount, { limitMs: 90_000 });
  });
  after(() => site?.close());

  const template = (labels: object, more: object = {}): object => ({
    metadata: { labels },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: "main", image: TEST_IMAGES.busybox, imagePullPolicy: "Never", command: FOREVER }],
      ...more,
    },
  });

  test("the node tells what it is, and has its lease and its CSINode", async () => {
    const node = await until("the node with its images, without taints of its controller", () => {
      const found = site.node();
      const hasImages = (found?.status?.images ?? []).length > 0;
      return hasImages && (found?.spec.taints ?? []).length === 1 ? found : undefined;
    });
    assert.equal(node.metadata.labels?.["kubernetes.io/hostname"], site.nodeName);
    assert.equal(node.metadata.labels?.["kubernetes.io/os"], "linux");
    assert.equal(node.metadata.labels?.["example.com/rack"], "r1");
    assert.deepEqual(node.spec.taints, [{ key: "example.com/new", value: "yes", effect: "PreferNoSchedule" }]);
    assert.deepEqual(node.status?.conditions?.map(({ type, status }) => `${type}=${status}`).sort(), [
      "DiskPressure=False",
      "MemoryPressure=False",
      "PIDPressure=False",
      "Ready=True",
    ]);
    assert.match(node.status?.nodeInfo?.containerRuntimeVersion ?? "", /^containerd:\/\/\d/);
    assert.match(node.status?.nodeInfo?.kubeletVersion ?? "", /^v1\.\d+\.\d+$/);
    assert.equal(node.status?.capacity?.["pods"], "110");
    assert.ok(node.status?.images?.some(({ names }) => names?.includes(TEST_IMAGES.busybox)));
    const lease = await until("its lease", () => site.lease().catch(() => undefined));
    assert.equal(lease.spec.holderIdentity, site.nodeName);
    const csi = site.get<{ metadata: { ownerReferences: { uid: string }[] } }>("csinode", site.nodeName);
    assert.equal(csi.metadata.ownerReferences[0]?.uid, node.metadata.uid);
  });

  test("there is no local API: that of the cluster is the only one", async () => {
    assert.deepEqual(
      ["apiserver", "apiserver.sock", "apiserver.kubeconfig"].filter((name) => existsSync(join(site.root, name))),
      [],
    );
    const tried = await fetch(`https://127.0.0.1:${apiPort}/healthz`).then(String, ({ cause }) => cause);
    assert.equal((tried as { code?: string }).code, "ECONNREFUSED");
  });

  test("kubectl run, get, describe and delete", async () => {
    const command = ["--image-pull-policy=Never", `--image=${TEST_IMAGES.busybox}`, "--command", "--", ...FOREVER];
    site.kubectl("run", "web", ...command);
    const pod = await site.podReady("web");
    assert.match(site.kubectl("get", "pods", "web"), /web\s+1\/1\s+Running\s+0/);
    assert.ok((pod.status?.podIP ?? "").length > 0);
    assert.equal(pod.status?.hostIP, site.node()?.status?.addresses?.[0]?.address);
    await until("its events", () =>
      /Scheduled[\s\S]*Pulled[\s\S]*Created[\s\S]*Started/.test(site.kubectl("describe", "pod", "web")),
    );
    site.kubectl("delete", "pod", "web");
    assert.equal(site.pod("web"), undefined);
    const uid = pod.metadata.uid ?? "";
    await until("its directory is gone", () => !existsSync(join(site.root, "pods", uid)));
  });

  test("kubectl logs and exec reach the node through the API server, which it asks who may", async () => {
    site.apply(testPod("talks", { containers: [shell("echo hello; trap 'exit 0' TERM; while :; do sleep 1; done")] }));
    await site.podReady("talks");
    await until("its word", () => site.kubectl("logs", "talks") === "hello\n");
    assert.equal(site.kubectl("exec", "talks", "--", "echo", "there"), "there\n");
    assert.equal(site.kubectl("get", "--raw", `/api/v1/nodes/${site.nodeName}/proxy/healthz`), "ok");
    site.kubectl("delete", "pod", "talks", "--wait=false");
    await site.podGone("talks");
  });

  test("a token, the namespace and the authority of the cluster are in every pod, and they are good", async () => {
    site.apply(
      testPod("account", {
        containers: [
          shell(
            "d=/var/run/secrets/kubernetes.io/serviceaccount; cat $d/namespace; echo; cat $d/token; echo; cat $d/ca.crt; sleep 3600",
          ),
        ],
      }),
    );
    const pod = await site.podReady("account");
    const [namespace, token = "", ...authority] = await until("its words", () => {
      const lines = site.log(pod).split("\n");
      return lines.length > 3 ? lines : undefined;
    });
    assert.equal(namespace, "default");
    assert.match(authority.join("\n"), /BEGIN CERTIFICATE/);
    const review = site.plane.review(token);
    assert.equal((await review).user?.username, "system:serviceaccount:default:default");
    site.kubectl("delete", "pod", "account", "--wait=false");
    await site.podGone("account");
  });

  test("variables of services, of ConfigMaps and of Secrets", async () => {
    site.kubectl("create", "service", "clusterip", "my-db", "--tcp=5432:5432");
    site.kubectl("create", "configmap", "settings", "--from-literal=COLOUR=blue");
    site.kubectl("create", "secret", "generic", "keys", "--from-literal=KEY=s3cret");
    site.apply(
      testPod("vars", {
        restartPolicy: "Never",
        containers: [
          shell("env", {
            envFrom: [{ configMapRef: { name: "settings" } }],
            env: [
              { name: "K", valueFrom: { secretKeyRef: { name: "keys", key: "KEY" } } },
              { name: "DB", value: "$(MY_DB_SERVICE_HOST):$(MY_DB_SERVICE_PORT)" },
            ],
          }),
        ],
      }),
    );
    const pod = await site.podIs("vars", "succeeded", ({ status }) => status?.phase === "Succeeded");
    const address = site.get<{ spec: { clusterIP: string } }>("service", "my-db").spec.clusterIP;
    // The runtime may write the last lines of a log after it has reported the exit.
    const variables = (of: Pod): string[] => site.log(of).split("\n");
    for (const line of ["COLOUR=blue", "K=s3cret", `DB=${address}:5432`, "KUBERNETES_SERVICE_HOST=10.96.0.1"]) {
      await until(line, () => variables(pod).includes(line), { seen: () => site.log(pod) });
    }
    const unlinked = { enableServiceLinks: false, restartPolicy: "Never", containers: [shell("env", {})] };
    site.apply(testPod("no-links", unlinked));
    const other = await site.podIs("no-links", "succeeded", ({ status }) => status?.phase === "Succeeded");
    const hasHost = (): boolean => variables(other).includes("KUBERNETES_SERVICE_HOST=10.96.0.1");
    await until("the API server's address", hasHost, { seen: () => site.log(other) });
    const names = variables(other);
    assert.ok(!names.some((line) => line.startsWith("MY_DB_")), names.join("\n"));
    site.kubectl("delete", "pod", "vars", "no-links");
  });

  test("a changed ConfigMap reaches its volume while the pod runs", async () => {
    site.kubectl("create", "configmap", "live", "--from-literal=word=before");
    const volumes = [{ name: "c", configMap: { name: "live" } }];
    site.apply(
      testPod("follower", {
        volumes,
        containers: [shell("sleep 3600", { volumeMounts: [{ name: "c", mountPath: "/c" }] })],
      }),
    );
    const pod = await site.podReady("follower");
    const file = join(site.root, "pods", pod.metadata.uid ?? "", "volumes/kubernetes.io~configmap/c/word");
    assert.equal(read(file), "before");
    const began = performance.now();
    site.kubectl("patch", "configmap", "live", "-p", '{"data":{"word":"after"}}');
    await until("the file has the new word", () => read(file) === "after");
    assert.ok(performance.now() - began < 20_000);
    site.kubectl("delete", "pod", "follower", "--wait=false");
    await site.podGone("follower");
  });

  test("a pod whose Secret is missing waits, and starts when it comes", async () => {
    const volumes = [{ name: "s", secret: { secretName: "late" } }];
    site.apply(
      testPod("waiter", {
        volumes,
        containers: [shell("sleep 3600", { volumeMounts: [{ name: "s", mountPath: "/s" }] })],
      }),
    );
    await until("it is said why", () => /FailedMount[\s\S]*late/.test(site.kubectl("get", "events")));
    site.kubectl("create", "secret", "generic", "late", "--from-literal=a=b");
    await site.podReady("waiter");
    site.kubectl("delete", "pod", "waiter", "--wait=false");
    await site.podGone("waiter");
  });

  test("a Deployment is rolled out, updated and scaled to nothing", async () => {
    site.apply({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "deploy" },
      spec: { replicas: 2, selector: { matchLabels: { app: "deploy" } }, template: template({ app: "deploy" }) },
    });
    site.kubectl("rollout", "status", "deployment/deploy", "--timeout=180s");
    const before = site.pods("app=deploy").map(({ metadata }) => metadata.name);
    site.kubectl("set", "env", "deployment/deploy", "A=1");
    site.kubectl("rollout", "status", "deployment/deploy", "--timeout=180s");
    await until(
      "the old ones are gone",
      () => site.pods("app=deploy").every(({ metadata }) => !before.includes(metadata.name)),
      { limitMs: COLLECT_MS },
    );
    site.kubectl("delete", "deployment", "deploy");
    await until("all are gone", () => site.pods("app=deploy").length === 0, { limitMs: COLLECT_MS });
  });

  test("a DaemonSet, a Job and a StatefulSet", async () => {
    const selector = (app: string): object => ({ selector: { matchLabels: { app } } });
    site.apply({
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: "daemon" },
      spec: { ...selector("daemon"), template: template({ app: "daemon" }) },
    });
    site.apply({
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "job" },
      spec: { template: template({ app: "job" }, { restartPolicy: "Never", containers: [shell("exit 0")] }) },
    });
    site.apply({
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "set" },
      spec: { ...selector("set"), serviceName: "set", replicas: 2, template: template({ app: "set" }) },
    });
    site.kubectl("rollout", "status", "daemonset/daemon", "--timeout=180s");
    site.kubectl("wait", "--for=condition=complete", "job/job", "--timeout=180s");
    site.kubectl("rollout", "status", "statefulset/set", "--timeout=180s");
    assert.deepEqual(
      site
        .pods("app=set")
        .map(({ metadata }) => metadata.name)
        .sort(),
      ["set-0", "set-1"],
    );
    const first = site.pod("set-0")?.metadata.uid;
    site.kubectl("delete", "pod", "set-0", "--wait=false");
    await site.podIs("set-0", "is another one", (pod) => pod.metadata.uid !== first && isReady(pod));
    site.kubectl("delete", "daemonset/daemon", "job/job", "statefulset/set");
    await until("all are gone", () => site.pods().length === 0, {
      limitMs: COLLECT_MS,
      seen: () => site.kubectl("get", "pods"),
    });
  });

  test("a static pod is shown by its mirror; deleting that never touches the pod", async () => {
    const file = join(site.manifests, "shown.json");
    writeFileSync(file, JSON.stringify(testPod("shown")));
    const name = `shown-${site.nodeName}`;
    const mirror = await site.podReady(name);
    assert.equal(mirror.metadata.ownerReferences?.[0]?.kind, "Node");
    const id = mirror.status?.containerStatuses?.[0]?.containerID;
    site.kubectl("delete", "pod", name, "--wait=false");
    const again = await site.podIs(
      name,
      "is shown anew",
      (pod) => pod.metadata.uid !== mirror.metadata.uid && isReady(pod),
    );
    assert.equal(again.status?.containerStatuses?.[0]?.containerID, id);
    unlinkSync(file);
    await site.podGone(name);
  });

  test("readiness gates are waited for", async () => {
    site.apply(testPod("gated", { readinessGates: [{ conditionType: "example.com/ok" }] }));
    await site.podIs("gated", "has ready containers", ({ status }) =>
      status?.conditions?.some(({ type, status: holds }) => type === "ContainersReady" && holds === "True"),
    );
    const unready = site.pod("gated")?.status?.conditions?.find(({ type }) => type === "Ready");
    assert.equal(unready?.status, "False");
    assert.equal(unready?.reason, "ReadinessGatesNotReady");
    const patch = { status: { conditions: [{ type: "example.com/ok", status: "True" }] } };
    site.kubectl("patch", "pod", "gated", "--subresource=status", "-p", JSON.stringify(patch));
    const pod = await site.podReady("gated");
    assert.ok(pod.status?.conditions?.some(({ type }) => type === "example.com/ok"));
    site.kubectl("delete", "pod", "gated", "--wait=false");
    await site.podGone("gated");
  });

  test("a process that ignores SIGTERM is killed after its grace, and a shorter grace counts at once", async () => {
    const stubborn = {
      name: "main",
      image: TEST_IMAGES.busybox,
      imagePullPolicy: "Never",
      command: ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"],
    };
    site.apply(testPod("stubborn", { terminationGracePeriodSeconds: 600, containers: [stubborn] }));
    await site.podReady("stubborn");
    site.kubectl("delete", "pod", "stubborn", "--wait=false");
    await site.podIs("stubborn", "is asked to go", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await pause(1000);
    assert.equal(site.pod("stubborn")?.status?.phase, "Running");
    site.kubectl("delete", "pod", "stubborn", "--grace-period=1", "--wait=false");
    await site.podGone("stubborn");
  });

  test("a preStop hook that runs goes on, and is run once, when the grace period is shortened", async () => {
    const hooks = join(site.dir, "hooks");
    mkdirSync(hooks);
    const drain = "echo began >> /h/hook; sleep 4; echo ended >> /h/hook";
    const main = {
      ...shell("trap 'exit 0' TERM; while :; do sleep 0.1; done"),
      volumeMounts: [{ name: "h", mountPath: "/h" }],
      lifecycle: { preStop: { exec: { command: ["/bin/sh", "-c", drain] } } },
    };
    const volumes = [{ name: "h", hostPath: { path: hooks } }];
    site.apply(testPod("drained", { terminationGracePeriodSeconds: 600, containers: [main], volumes }));
    await site.podReady("drained");
    site.kubectl("delete", "pod", "drained", "--wait=false");
    await until("the hook has begun", () => existsSync(join(hooks, "hook")));
    site.kubectl("delete", "pod", "drained", "--grace-period=60", "--wait=false");
    await site.podGone("drained");
    assert.equal(readFileSync(join(hooks, "hook"), "utf8"), "began\nended\n");
  });

  test("a force-deleted pod's replacement of the same name does not wait for its end", async () => {
    const ignoring = shell("trap '' TERM; while :; do sleep 1; done");
    site.apply(testPod("twin", { terminationGracePeriodSeconds: 300, containers: [ignoring] }));
    const first = await site.podReady("twin");
    site.kubectl("delete", "pod", "twin", "--force", "--grace-period=0");
    site.apply(testPod("twin"));
    const second = await site.podIs(
      "twin",
      "is another one",
      (pod) => pod.metadata.uid !== first.metadata.uid && isReady(pod),
    );
    assert.notEqual(
      second.status?.containerStatuses?.[0]?.containerID,
      first.status?.containerStatuses?.[0]?.containerID,
    );
    site.kubectl("delete", "pod", "twin", "--wait=false");
    await site.podGone("twin");
  });

  test("what admission refuses fails with its reason, and can be deleted", async () => {
    const port = [{ containerPort: 80, hostPort: await freePort() }];
    const spec = { nodeName: site.nodeName, containers: [shell("sleep 3600", { ports: port })] };
    site.apply(testPod("holder", spec));
    await site.podReady("holder");
    site.apply(testPod("refused", spec));
    const refused = await site.podIs("refused", "failed", ({ status }) => status?.phase === "Failed");
    assert.equal(refused.status?.reason, "NodePorts");
    assert.ok(refused.status?.startTime !== undefined, "a rejected pod has a start time");
    assert.equal(refused.status?.observedGeneration, refused.metadata.generation);
    site.kubectl("delete", "pod", "holder", "refused", "--wait=false");
    await site.podGone("refused");
    await site.podGone("holder");
  });

  test("an idle pod is not patched again and again", async () => {
    site.apply(testPod("idle"));
    await site.podReady("idle");
    let version: string | undefined = "none yet";
    while (version !== site.pod("idle")?.metadata.resourceVersion) {
      version = site.pod("idle")?.metadata.resourceVersion;
      await pause(4000);
    }
    await pause(12_000);
    assert.equal(site.pod("idle")?.metadata.resourceVersion, version);
  });

  test("another start of the agent restarts nothing and never flips Ready", async () => {
    const before = await site.podReady("idle");
    await agent.end("SIGKILL");
    agent = await site.join();
    await until("it watches again", () => agent.stderr.includes("Subscribed to runtime events"), { limitMs: 90_000 });
    await pause(3000);
    const now = site.pod("idle");
    assert.equal(now?.status?.containerStatuses?.[0]?.containerID, before.status?.containerStatuses?.[0]?.containerID);
    assert.equal(now?.status?.containerStatuses?.[0]?.restartCount, 0);
    assert.deepEqual(readySince(now), readySince(before));
    assert.equal(now?.status?.startTime, before.status?.startTime);
    site.kubectl("delete", "pod", "idle", "--wait=false");
    await site.podGone("idle");
  });

  test("completed pods take no room from those that came while no agent ran", async () => {
    const cpu = site.node()?.status?.allocatable?.["cpu"] ?? "";
    const resources = { requests: { cpu } };
    const { nodeName } = site;
    const done = { nodeName, restartPolicy: "Never", containers: [shell("true", { resources })] };
    site.apply(testPod("done", done));
    await site.podIs("done", "has completed", ({ status }) => status?.phase === "Succeeded");
    await agent.end("SIGKILL");
    site.apply(testPod("next", { nodeName, containers: [shell("sleep 3600", { resources })] }));
    agent = await site.join();
    await site.podReady("next");
    site.kubectl("delete", "pod", "done", "next", "--wait=false");
    await site.podGone("next");
  });

  test("a completed pod whose volume cannot be removed takes no room", async (t) => {
    const cpu = site.node()?.status?.allocatable?.["cpu"] ?? "";
    const resources = { requests: { cpu } };
    const { nodeName } = site;
    const waits = "while [ ! -e /v/go ]; do sleep 0.1; done";
    const main = shell(waits, { resources, volumeMounts: [{ name: "v", mountPath: "/v" }] });
    const volumes = [{ name: "v", emptyDir: {} }];
    site.apply(testPod("stuck", { nodeName, restartPolicy: "Never", containers: [main], volumes }));
    const { metadata } = await site.podReady("stuck");
    const volume = join(site.root, "pods", metadata.uid ?? "", "volumes/kubernetes.io~empty-dir/v");
    // Nothing below a mount that is not the agent's is ever removed.
    mkdirSync(join(volume, "foreign"));
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", join(volume, "foreign")]);
    let isMounted = true;
    const unmount = (): void => {
      if (isMounted) execFileSync("umount", [join(volume, "foreign")]);
      isMounted = false;
    };
    t.after(unmount);
    writeFileSync(join(volume, "go"), "");
    await site.podIs("stuck", "has completed", ({ status }) => status?.phase === "Succeeded");
    site.apply(testPod("next", { nodeName, containers: [shell("sleep 3600", { resources })] }));
    await site.podReady("next");
    assert.ok(existsSync(volume));
    unmount();
    await site.removePods("stuck", "next");
  });

  test("a deleted Node object comes back with a restart of the agent, with its lease and its CSINode", async () => {
    const before = site.node()?.metadata.uid;
    site.kubectl("delete", "node", site.nodeName);
    await until("the agent has noticed", () => /Node object was deleted/.test(agent.stderr));
    await pause(3000);
    assert.equal(await site.lookAtNode(), undefined);
    await agent.end("SIGTERM");
    agent = await site.join();
    const node = await until(
      "the node is there again",
      async () => {
        const found = await site.lookAtNode();
        return found !== undefined && found.metadata.uid !== before && isNodeReady(found) && found;
      },
      { limitMs: 90_000 },
    );
    const owner = (object: { metadata: { ownerReferences?: { uid: string }[] } }): string | undefined =>
      object.metadata.ownerReferences?.[0]?.uid;
    await until("the CSINode is its own", () => {
      const { items } = site.get<{ items: { metadata: { ownerReferences?: { uid: string }[] } }[] }>("csinodes");
      return items.length === 1 && items.every((item) => owner(item) === node.metadata.uid);
    });
    await until("the lease is its own", async () => {
      const lease = await site.lease().catch(() => undefined);
      return lease?.metadata.ownerReferences?.[0]?.uid === node.metadata.uid;
    });
    site.apply(testPod("again"));
    await site.podReady("again");
    site.kubectl("delete", "pod", "again", "--wait=false");
    await site.podGone("again");
  });
});

function shell(script: string, more: object = {}): object {
  return {
    name: "main",
    image: TEST_IMAGES.busybox,
    imagePullPolicy: "Never",
    command: ["/bin/sh", "-c", script],
    ...more,
  };
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function readySince(pod: Pod | undefined): string | undefined {
  const ready = pod?.status?.conditions?.find(({ type }) => type === "Ready");
  return ready && `${ready.status} since ${ready.lastTransitionTime}`;
}

function isNodeReady(node: Node | undefined): boolean {
  return node?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}
