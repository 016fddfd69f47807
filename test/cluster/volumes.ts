/** Volumes that come from a real API server with a node's own rights: claims and what they are bound to, trust bundles. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { TestAuthority } from "../support/control-plane-pki.ts";

skipWithoutCluster();

const RACK = "example.com/rack";

describe("volumes of a real cluster", () => {
  let site: ClusterSite;
  let agent: Program;
  const flags = [`--node-labels=${RACK}=r1`];
  before(async () => {
    const apiServerArgs = [
      "--feature-gates=ClusterTrustBundle=true,ClusterTrustBundleProjection=true",
      "--runtime-config=certificates.k8s.io/v1beta1=true",
    ];
    site = await ClusterSite.start({ controllers: true, scheduler: true, apiServerArgs });
    agent = await site.join(flags);
    await site.nodeReady();
  });
  after(() => site?.close());

  /** A directory of the node that a PersistentVolume stands for. */
  const disk = (name: string): string => {
    const path = join(site.dir, `disk-${name}`);
    mkdirSync(path, { recursive: true });
    return path;
  };
  const local = (name: string, rack = "r1"): object => ({
    local: { path: disk(name) },
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key: RACK, operator: "In", values: [rack] }] }] },
    },
  });
  /** A volume that only the claim of this name gets. */
  const volume = (name: string, source: object, metadata: object = {}): void =>
    site.apply({
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: `pv-${name}`, ...metadata },
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        storageClassName: "",
        persistentVolumeReclaimPolicy: "Retain",
        claimRef: { namespace: "default", name },
        ...source,
      },
    });
  const claim = (name: string, more: object = {}): void =>
    site.apply({
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name },
      spec: { ...claimSpec(name), ...more },
    });
  const claimSpec = (name: string): object => ({
    accessModes: ["ReadWriteOnce"],
    storageClassName: "",
    volumeName: `pv-${name}`,
    resources: { requests: { storage: "1Gi" } },
  });
  const claims = (name: string, more: object = {}): object => ({
    volumes: [{ name: "v", persistentVolumeClaim: { claimName: name, ...more } }],
  });
  const podDir = (pod: Pod): string => join(site.root, "pods", pod.metadata.uid ?? "none");
  const remove = (name: string): Promise<void> => site.removePods(name);

  test("a claim of a local volume: scheduled, mounted, written, and the data stays when the pod goes", async () => {
    volume("data", local("data"));
    claim("data");
    const writer = shell("echo kept > /v/file; trap 'exit 0' TERM; while :; do sleep 1; done");
    site.apply(testPod("writer", { ...claims("data"), containers: [writer], securityContext: { fsGroup: 4242 } }));
    const pod = await site.podReady("writer");
    const mounted = join(podDir(pod), "volumes/kubernetes.io~local-volume/pv-data");
    await until("the file", () => existsSync(join(disk("data"), "file")));
    assert.equal(readFileSync(join(mounted, "file"), "utf8"), "kept\n");
    const { gid, mode } = statSync(disk("data"));
    assert.deepEqual([gid, mode & 0o2070], [4242, 0o2070]);
    await remove("writer");
    await until("nothing of the pod is left", () => !existsSync(podDir(pod)) && !mounts().includes(mounted));
    assert.deepEqual(readdirSync(disk("data")), ["file"]);
    site.apply(
      testPod("reader", {
        ...claims("data", { readOnly: true }),
        containers: [shell("cat /v/file; echo x > /v/no; sleep 3600")],
      }),
    );
    const reader = await site.podReady("reader");
    // Its two outputs have no order.
    await until("its words", () => [/^kept$/m, /Read-only file system/].every((words) => words.test(site.log(reader))));
    await remove("reader");
  });

  for (const policy of ["Always", "OnRootMismatch"]) {
    test(`fsGroupChangePolicy ${policy}, and the gid of a volume is a group of the processes`, async () => {
      const name = `group-${policy.toLowerCase()}`;
      const file = join(disk(name), "old");
      writeFileSync(file, "old");
      // The top of the volume is as fsGroup wants it, the file in it is not.
      chownSync(disk(name), 0, 4242);
      chmodSync(disk(name), 0o2775);
      volume(name, local(name), { annotations: { "pv.beta.kubernetes.io/gid": "5151" } });
      claim(name);
      const securityContext = { fsGroup: 4242, fsGroupChangePolicy: policy };
      site.apply(testPod(name, { ...claims(name), containers: [shell("id -G; sleep 3600")], securityContext }));
      const pod = await site.podReady(name);
      assert.equal(statSync(file).gid, policy === "Always" ? 4242 : 0);
      await until("its groups", () => /\b4242\b.*\b5151\b/.test(site.log(pod)));
      await remove(name);
    });
  }

  test("a claim of a hostPath volume", async () => {
    volume("host", { hostPath: { path: disk("host"), type: "Directory" } });
    claim("host");
    site.apply(testPod("host", { ...claims("host"), containers: [shell("echo there > /v/file; sleep 3600")] }));
    await site.podReady("host");
    await until("the file", () => existsSync(join(disk("host"), "file")));
    await remove("host");
    assert.deepEqual(readdirSync(disk("host")), ["file"]);
  });

  test("a pod that comes before its claim is bound says so, and starts within seconds when it is", async () => {
    site.apply(testPod("early", { nodeName: site.nodeName, ...claims("later"), containers: [shell("sleep 3600")] }));
    await event("early", /persistentvolumeclaim "later" not found/);
    claim("later");
    await event("early", /PVC is not bound/);
    volume("later", local("later"));
    await site.podReady("early");
    await remove("early");
  });

  test("a volume of another node is never mounted", async () => {
    volume("elsewhere", local("elsewhere", "r2"));
    claim("elsewhere");
    const spec = { nodeName: site.nodeName, ...claims("elsewhere"), containers: [shell("sleep 3600")] };
    site.apply(testPod("astray", spec));
    await event(
      "astray",
      /MountVolume.NodeAffinity check failed for volume "pv-elsewhere" : no matching NodeSelectorTerms/,
    );
    assert.equal(
      mounts().some((path) => path.endsWith("/pv-elsewhere")),
      false,
    );
    await remove("astray");
  });

  test("an ephemeral volume is a claim that lives as long as its pod", async () => {
    volume("brief-scratch", local("brief-scratch"));
    const volumes = [{ name: "scratch", ephemeral: { volumeClaimTemplate: { spec: claimSpec("brief-scratch") } } }];
    const main = shell("echo here > /v/file; sleep 3600", "scratch");
    site.apply(testPod("brief", { volumes, containers: [main] }));
    await site.podReady("brief");
    await until("the file", () => existsSync(join(disk("brief-scratch"), "file")));
    await remove("brief");
    await until("the claim is gone", () => !site.kubectl("get", "pvc").includes("brief-scratch"));
  });

  /** A device of one mebibyte or more, over a file; undefined where there are none. */
  const loopDevice = (name: string, content: Buffer): { device: string; file: string } | undefined => {
    const file = join(site.dir, `${name}.img`);
    writeFileSync(file, content);
    const { status, stdout } = spawnSync("losetup", ["--find", "--show", file], { encoding: "utf8" });
    return status === 0 ? { device: stdout.trim(), file } : undefined;
  };

  test("a claim of a block device: the container reads and writes it, and it is never mounted", async (t) => {
    const loop = loopDevice("raw", Buffer.alloc(1 << 20, "a"));
    if (loop === undefined) return t.skip("this machine has no loop devices");
    const { device, file } = loop;
    try {
      volume("raw", { ...local("raw"), local: { path: device }, volumeMode: "Block" });
      claim("raw", { volumeMode: "Block" });
      const script = "head -c 4 /dev/xvda; echo; printf done | dd of=/dev/xvda conv=notrunc,fsync; sleep 3600";
      const { volumeMounts: _, ...plain } = shell(script);
      const main = { ...plain, volumeDevices: [{ name: "v", devicePath: "/dev/xvda" }] };
      site.apply(testPod("raw", { ...claims("raw"), containers: [main] }));
      const pod = await site.podReady("raw");
      const seen = (): string => site.log(pod);
      await until("it was written", () => readFileSync(file).subarray(0, 5).toString() === "donea", { seen });
      await until("what it read", () => /^aaaa$/m.test(site.log(pod)), { seen });
      await remove("raw");
      site.apply(testPod("wrong", { nodeName: site.nodeName, ...claims("raw"), containers: [shell("sleep 3600")] }));
      await event("wrong", /volume v has volumeMode Block, but is specified in volumeMounts/);
      await remove("wrong");
    } finally {
      spawnSync("losetup", ["--detach", device]);
    }
  });

  test("a claim of a blank device: it gets a filesystem, and the next pod finds what the first one wrote", async (t) => {
    const loop = loopDevice("blank", Buffer.alloc(16 << 20));
    if (loop === undefined) return t.skip("this machine has no loop devices");
    try {
      volume("blank", { ...local("blank"), local: { path: loop.device, fsType: "ext4" } });
      claim("blank");
      for (const name of ["one", "two"]) {
        const script = `echo ${name} >> /v/file; cat /v/file; grep ' /v ' /proc/mounts; sleep 3600`;
        site.apply(testPod(`disk-${name}`, { ...claims("blank"), containers: [shell(script)] }));
        const pod = await site.podReady(`disk-${name}`);
        const want = name === "one" ? /^one\n\/dev\/loop\d+ \/v ext4 / : /^one\ntwo\n\/dev\/loop\d+ \/v ext4 /;
        await until("its words", () => want.test(site.log(pod)), { seen: () => site.log(pod) });
        await remove(`disk-${name}`);
        await until("nothing of the pod is left", () => !existsSync(podDir(pod)));
      }
    } finally {
      spawnSync("losetup", ["--detach", loop.device]);
    }
  });

  test("trust bundles by name and by signer, changed while the pod runs, also over a kill of the agent", async () => {
    const [one, two, three] = [1, 2, 3].map(() => new TestAuthority().certificate.trim());
    const signerName = "example.com/signer";
    const bundle = (name: string, pem: string | undefined, live?: string): void =>
      site.apply({
        apiVersion: "certificates.k8s.io/v1beta1",
        kind: "ClusterTrustBundle",
        metadata: { name, labels: { live } },
        spec: { trustBundle: pem, ...(live && { signerName }) },
      });
    const source = (path: string, more: object): object => ({ clusterTrustBundle: { path, ...more } });
    const sources = [
      source("named.pem", { name: "roots" }),
      source("signed.pem", { signerName, labelSelector: { matchLabels: { live: "yes" } } }),
      source("missing.pem", { name: "not-there", optional: true }),
    ];
    const volumes = [{ name: "v", projected: { sources } }];
    bundle("example.com:signer:a", one, "yes");
    bundle("example.com:signer:b", two, "no");
    site.apply(testPod("trusts", { volumes, containers: [shell("sleep 3600")] }));
    await event("trusts", /clustertrustbundle "roots" not found/);
    bundle("roots", three);
    const pod = await site.podReady("trusts");
    const file = (name: string): string =>
      readFileSync(join(podDir(pod), "volumes/kubernetes.io~projected/v", name), "utf8");
    assert.deepEqual([file("named.pem"), file("signed.pem"), file("missing.pem")], [`${three}\n`, `${one}\n`, ""]);
    bundle("roots", two);
    // From then on the server has it.
    const began = performance.now();
    await until("the new roots", () => file("named.pem") === `${two}\n`);
    // Long before the agent's next sync.
    assert.ok(performance.now() - began < 10_000, `${performance.now() - began} ms`);
    await agent.end("SIGKILL");
    bundle("example.com:signer:b", two, "yes");
    agent = await site.join(flags);
    await until(
      "both of the signer",
      () =>
        file("signed.pem") ===
        [one, two]
          .sort()
          .map((pem) => `${pem}\n`)
          .join(""),
      { limitMs: 60_000 },
    );
    bundle("not-there", one);
    await until("the optional one", () => file("missing.pem") === `${one}\n`);
    await remove("trusts");
  });

  test("the node was never refused anything", () => {
    assert.doesNotMatch(agent.stderr, /[Ff]orbidden/);
  });

  async function event(pod: string, words: RegExp): Promise<void> {
    const all = (): string =>
      site.kubectl("get", "events", "--field-selector", `involvedObject.name=${pod}`, "-o", "json");
    const found = (): boolean =>
      (JSON.parse(all()) as { items: { reason: string; message: string }[] }).items.some(
        ({ reason, message }) => reason === "FailedMount" && words.test(message),
      );
    await until(`an event of ${pod}: ${words}`, found, { seen: all });
  }
});

function mounts(): readonly string[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "");
}

/** A container with the volume at /v. */
function shell(
  script: string,
  name = "v",
): { readonly name: string; readonly volumeMounts: readonly object[]; readonly [field: string]: unknown } {
  return {
    name: "main",
    image: TEST_IMAGES.busybox,
    imagePullPolicy: "Never",
    command: ["/bin/sh", "-c", script],
    volumeMounts: [{ name, mountPath: "/v" }],
  };
}
