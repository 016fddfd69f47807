/** Volumes of every kind on a running agent: real mounts, real updates, and nothing left behind. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { stringify } from "yaml";
import { DEMO_IMAGE } from "../../src/adapters/embedded/index.ts";
import type { VolumeMount } from "../../src/model/generated/types.ts";
import type { PodStorage } from "../../src/model/pod-storage.ts";
import { everyKind } from "./support/every-kind.ts";
import { FOREVER, forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, ids, requireExec, requireMachine, Site } from "./support/site.ts";
import { pause, SLOWNESS, until } from "./support/until.ts";

requireMachine();
requireExec();

const site = new Site();
const podsDir = join(site.state, "kubelet/pods");
const { signal } = new AbortController();
let agent: Agent;

before(async () => {
  agent = await site.up();
});
after(() => site.close());

/** Writes an object beside the pods, by a rename as an editor does. */
function object(kind: "ConfigMap" | "Secret", name: string, data: Record<string, string>): void {
  const fields = kind === "ConfigMap" ? { data } : { stringData: data };
  const text = stringify({ apiVersion: "v1", kind, metadata: { name }, ...fields });
  writeFileSync(site.file(`.${name}.tmp`), text);
  renameSync(site.file(`.${name}.tmp`), site.file(`${kind.toLowerCase()}-${name}.yaml`));
}

function drop(kind: "ConfigMap" | "Secret", name: string): void {
  rmSync(site.file(`${kind.toLowerCase()}-${name}.yaml`));
}

/** What a shell in the pod's first container says; the error is part of it. */
async function inside(pod: string, script: string): Promise<string> {
  const found = await site.running(pod);
  const id = found.containers[0]?.id.replace(/^.*:\/\//, "") ?? "";
  const { stdout, stderr } = await site.cri.execSync(
    id,
    { command: ["/bin/sh", "-c", script], timeoutSeconds: 60 * SLOWNESS },
    { signal },
  );
  return `${Buffer.from(stdout)}${Buffer.from(stderr)}`.trim();
}

function mountsBelow(path: string): string[] {
  const targets = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "");
  return targets.filter((target) => target.startsWith(path));
}

/** A change is seen within 2 s; three tries, since a busy machine may hold up one of them for longer. */
async function isSeenSoon(change: (turn: number) => void, isSeen: (turn: number) => boolean): Promise<void> {
  const took: number[] = [];
  for (let turn = 0; turn < 3; turn++) {
    const began = performance.now();
    change(turn);
    await until("the change is seen", () => isSeen(turn));
    took.push(Math.round(performance.now() - began));
    if ((took.at(-1) ?? 0) < 2000 * SLOWNESS) return;
  }
  assert.fail(`the changes were seen after ${took.join(", ")} ms`);
}

const UID = "00000000-0000-4000-8000-00000000a11a";

/** What files of the pod's volumes say on the node: a command in the container takes a time of its own. */
function onNode(...files: readonly string[]): string {
  const read = (file: string): string => {
    try {
      return readFileSync(join(podsDir, UID, "volumes", `kubernetes.io~${file}`), "utf8");
    } catch {
      // It is being replaced.
      return "";
    }
  };
  return files.map(read).join("");
}

describe("a pod with a volume of every kind", () => {
  const host = mkdtempSync(join(site.dir, "h-"));
  let first: Record<string, string> = {};

  it("starts and sees what it should", async () => {
    mkdirSync(join(host, "inner"));
    writeFileSync(join(host, "inner/precious"), "keep");
    object("ConfigMap", "settings", { colour: "green", size: "7" });
    object("Secret", "login", { password: "secret-1" });
    site.write(everyKind({ host, uid: UID }));
    first = ids(await site.running("every-kind"));
    const show = [
      "cat /v/config/deep/colour /v/config/size; echo",
      "stat -L -c '%a %g' /v/config/deep/colour /v/login/password",
      "cat /v/login/password /v/self/note /v/self/cpu; echo",
      "cat /v/mixed/from/config /v/mixed/from/secret /v/mixed/from/self; echo",
      "ls /v/maybe | wc -l; cat /sub/file; echo; cat /sub/host/precious; echo",
      "echo $COLOUR $PASSWORD $S_size",
      "awk '$2 ~ /^.v/ {print $2, $3, substr($4, 1, 2)}' /proc/mounts | sort",
    ];
    const lines = (await inside("every-kind", show.join("\n"))).split("\n");
    const disk = lines.find((line) => line.startsWith("/v/disk "))?.split(" ")[1];
    assert.deepEqual(lines, [
      "green7",
      ...["640 4242", "440 4242"],
      "secret-1one10",
      `7secret-1every-kind-${(await site.find("every-kind"))?.name.slice("every-kind-".length)}`,
      ...["0", "green", "keep", "green secret-1 7"],
      ...[`/v/config ${disk} ro`, `/v/disk ${disk} rw`, `/v/host ${disk} rw`, "/v/login tmpfs ro", "/v/maybe tmpfs ro"],
      ...["/v/memory tmpfs rw", "/v/mixed tmpfs ro", "/v/self tmpfs ro", `/v/whole ${disk} ro`],
    ]);
  });

  it("may write where it may, with its group, and nowhere else", async () => {
    const script =
      "echo x > /sub/dir/f && cat /v/disk/a/b/f; ls -d /v/disk/of-every-kind-*; stat -c '%a %g' /v/disk /v/disk/a/b/f";
    const lines = (await inside("every-kind", script)).split("\n");
    assert.deepEqual([lines[0], ...lines.slice(2)], ["x", "2777 4242", "644 4242"]);
    for (const path of ["/v/login/x", "/v/config/x", "/v/self/x", "/v/mixed/x", "/sub/host/x", "/sub/file"]) {
      assert.match(await inside("every-kind", `echo x > ${path}`), /Read-only file system/, path);
    }
    assert.match(await inside("every-kind", "head -c 9000000 /dev/zero > /v/memory/big"), /No space left|I\/O error/);
  });

  it("sees updates within 2 s, all files of one at once", async () => {
    // The old files are removed once the new ones are there: who has read only one of them has read nothing.
    const torn = inside(
      "every-kind",
      "touch /tmp/reads; until [ -e /tmp/enough ]; do d=$(readlink /v/whole/..data); both=$(cat /v/whole/$d/colour /v/whole/$d/size 2>/dev/null) && echo $both; sleep 0.01; done | sort -u",
    );
    await until("the reader reads", async () => (await inside("every-kind", "ls /tmp/reads")) === "/tmp/reads");
    const settings = (): string =>
      onNode("configmap/config/deep/colour", "configmap/whole/extra", "projected/mixed/from/config");
    await isSeenSoon(
      (turn) => object("ConfigMap", "settings", { colour: `blue${turn}`, size: `8${turn}`, extra: "new" }),
      (turn) => settings() === `blue${turn}new8${turn}`,
    );
    const shown = await inside("every-kind", "cat /v/config/deep/colour /v/whole/extra /v/mixed/from/config");
    assert.equal(shown, settings());
    await inside("every-kind", "touch /tmp/enough");
    for (const line of (await torn).split("\n")) assert.match(line, /^(green7|blue080|blue181|blue282|)$/);
    const login = (): string => onNode("secret/login/password", "secret/login/more", "projected/mixed/from/secret");
    await isSeenSoon(
      (turn) => object("Secret", "login", { password: `secret-2${turn}`, more: "m" }),
      (turn) => login() === `secret-2${turn}msecret-2${turn}`,
    );
    assert.equal(await inside("every-kind", "cat /v/login/password /v/login/more /v/mixed/from/secret"), login());
    object("Secret", "not-there", { now: "here" });
    await until("the optional secret", async () => (await inside("every-kind", "cat /v/maybe/now")) === "here");
    drop("Secret", "not-there");
    await until("its end", async () => (await inside("every-kind", "ls /v/maybe")) === "");
    site.write(everyKind({ host, uid: UID, note: "two" }));
    await until("the annotation", async () => (await inside("every-kind", "cat /v/self/note")) === "two");
    // A file that was mounted by itself stays what it was, as in Kubernetes.
    assert.equal(await inside("every-kind", "cat /sub/file"), "green");
    assert.deepEqual(ids(await site.running("every-kind")), first, "nothing was restarted");
  });

  it("tells what it keeps on the node: emptyDirs, logs and the writable layer", async () => {
    await inside("every-kind", "head -c 3145728 /dev/zero > /v/disk/big; head -c 2097152 /dev/zero > /layer");
    await inside("every-kind", "seq 20000 > /proc/1/fd/1");
    const ask = async (): Promise<PodStorage> =>
      (JSON.parse((await site.run("explain", "every-kind", "-o", "json")).stdout) as { storage: PodStorage }).storage;
    let storage = await ask();
    const bytes = (kind: string, name: string): number =>
      storage.parts.find((part) => part.kind === kind && part.name === name)?.usage?.bytes ?? 0;
    // The runtime measures layers every ten seconds.
    const isMeasured = async (): Promise<boolean> => {
      storage = await ask();
      const isWhole = bytes("emptyDir", "disk") >= 3 << 20 && bytes("log", "main") > 100_000;
      return storage.isFresh && bytes("layer", "main") >= 2 << 20 && isWhole;
    };
    await until("all is measured", isMeasured, { limitMs: 60_000, seen: () => storage });
    const memory = storage.parts.find(({ name }) => name === "memory");
    assert.deepEqual([memory?.isMemory, memory?.sizeLimit, memory?.usage?.bytes], [true, 8 << 20, 8 << 20]);
    assert.ok(storage.bytes > 5 << 20 && storage.bytes < 7 << 20, JSON.stringify(storage));
    const words = /^Storage\n {2}emptyDir disk +3\.0Mi +walked\n {2}emptyDir memory +8\.0Mi +of 8\.0Mi +in memory$/m;
    let text = "";
    const isShown = async (): Promise<boolean> => words.test((text = (await site.run("explain", "every-kind")).stdout));
    await until("explain shows it", isShown, { seen: () => text });
    await inside("every-kind", "rm /v/disk/big /layer");
  });

  it("keeps its volumes over kill -9 of the agent, and the next agent follows them", async () => {
    const mounts = mountsBelow(join(podsDir, UID)).sort();
    for (const waitMs of [0, 150, 400]) {
      await agent.end("SIGKILL");
      object("ConfigMap", "settings", { colour: `while-away-${waitMs}`, size: "9" });
      agent = await site.launch();
      await pause(waitMs);
    }
    await agent.end("SIGKILL");
    agent = await site.up();
    await until(
      "the change made meanwhile",
      async () => (await inside("every-kind", "cat /v/config/deep/colour")) === "while-away-400",
    );
    object("ConfigMap", "settings", { colour: "after", size: "9" });
    await until("a later change", async () => (await inside("every-kind", "cat /v/config/deep/colour")) === "after");
    assert.deepEqual(ids(await site.running("every-kind")), first);
    assert.deepEqual(mountsBelow(join(podsDir, UID)).sort(), mounts, "nothing is mounted twice");
  });

  it("takes everything along when it goes, and nothing of the user's", async () => {
    site.remove("every-kind");
    await site.gone("every-kind");
    assert.deepEqual(mountsBelow(podsDir), []);
    assert.equal(existsSync(join(podsDir, UID)), false);
    assert.equal(readFileSync(join(host, "inner/precious"), "utf8"), "keep");
  });
});

describe("a pod that waits for an object", { concurrency: 3 }, () => {
  it("says for which and why, and starts when it appears", async () => {
    const volumes = [{ name: "config", configMap: { name: "late" } }];
    const main = shell("main", FOREVER, { volumeMounts: [{ name: "config", mountPath: "/config" }] });
    site.write(manifest("waits", { containers: [main], volumes }));
    await site.event(
      "FailedMount",
      "waits",
      /MountVolume.SetUp failed for volume "config" : configmap "late" not found/,
    );
    await until("explain says it", async () =>
      /configmap "late" not found/.test((await site.run("explain", "waits")).stdout),
    );
    object("ConfigMap", "late", { a: "1" });
    await site.running("waits");
    assert.equal(await inside("waits", "cat /config/a"), "1");
    site.remove("waits");
    drop("ConfigMap", "late");
    await site.gone("waits");
  });

  it("may be removed while it waits", async () => {
    site.write(manifest("impatient", { volumes: [{ name: "s", secret: { secretName: "never" } }] }));
    await site.event("FailedMount", "impatient");
    site.remove("impatient");
    await site.gone("impatient");
  });

  it("a bad object is reported, and its last good version stays", async () => {
    object("ConfigMap", "robust", { a: "1" });
    const volumes = [{ name: "config", configMap: { name: "robust" } }];
    const main = shell("main", FOREVER, { volumeMounts: [{ name: "config", mountPath: "/config" }] });
    site.write(manifest("robust-object", { containers: [main], volumes }));
    await site.running("robust-object");
    for (const key of ["../escape", "..data", "a/b"]) {
      object("ConfigMap", "robust", { [key]: "x" });
      await until(`a report about ${key}`, async () =>
        (await site.events()).some(
          ({ reason, message }) => reason === "InvalidManifest" && message.includes(JSON.stringify(key)),
        ),
      );
    }
    assert.equal(await inside("robust-object", "cat /config/a"), "1");
    site.remove("robust-object");
    drop("ConfigMap", "robust");
    await site.gone("robust-object");
  });
});

describe("directories of orphaned pods", () => {
  it("are removed by the next agent with what an agent mounted there, but never through a foreign mount", async () => {
    const data = mkdtempSync(join(site.dir, "data-"));
    writeFileSync(join(data, "precious"), "keep");
    await agent.end("SIGKILL");
    const old = join(podsDir, "11111111-old");
    const secret = join(old, "volumes/kubernetes.io~secret/s");
    const foreign = join(podsDir, "22222222-foreign");
    const bound = join(foreign, "volumes/kubernetes.io~empty-dir/e/bound");
    for (const path of [secret, bound]) mkdirSync(path, { recursive: true });
    const link = join(site.state, "log/containers/old_default_app-1.log");
    symlinkSync(join(site.state, "log/pods/default_old_11111111-old/app/0.log"), link);
    assert.equal(spawnSync("mount", ["-t", "tmpfs", "tmpfs", secret]).status, 0);
    assert.equal(spawnSync("mount", ["--bind", data, bound]).status, 0);
    try {
      agent = await site.up();
      await until("the old one is gone", () => !existsSync(old));
      await until("the link to its log is gone", () => lstatSync(link, { throwIfNoEntry: false }) === undefined);
      assert.deepEqual(readdirSync(data), ["precious"]);
      assert.ok(existsSync(join(bound, "precious")), "the other is still there");
    } finally {
      assert.equal(spawnSync("umount", [bound]).status, 0);
    }
    site.write(manifest("wakes-the-sweep"));
    await until("the other is gone too", () => !existsSync(foreign));
    assert.equal(readFileSync(join(data, "precious"), "utf8"), "keep");
    assert.ok(statSync(data).isDirectory());
    site.remove("wakes-the-sweep");
    await site.gone("wakes-the-sweep");
  });
});

function sh(command: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  assert.equal(status, 0, `${command} ${args.join(" ")}: ${stderr}`);
}

describe("mounts that are made while the pod runs", () => {
  const shared = mkdtempSync(join(site.dir, "p-"));
  before(() => {
    for (const name of ["late", "inner"]) mkdirSync(join(shared, name));
    sh("mount", "--bind", shared, shared);
    sh("mount", "--make-shared", shared);
  });
  after(() => {
    const there = mountsBelow(shared);
    for (const path of there.reverse()) sh("umount", path);
  });

  it("reach it, or the host, as its mountPropagation says", async () => {
    const modes = { none: "None", to: "HostToContainer", both: "Bidirectional" };
    const volumeMounts = Object.entries(modes).map(([name, mountPropagation]) => ({
      name: "host",
      mountPath: `/${name}`,
      mountPropagation,
    }));
    const main = shell("main", FOREVER, { volumeMounts, securityContext: { privileged: true } });
    const volumes = [{ name: "host", hostPath: { path: shared, type: "Directory" } }];
    site.write(manifest("propagation", { containers: [main], volumes }));
    await site.running("propagation");
    sh("mount", "-t", "tmpfs", "tmpfs", join(shared, "late"));
    writeFileSync(join(shared, "late/file"), "x");
    assert.equal(await inside("propagation", "ls /none/late; ls /to/late; ls /both/late"), "file\nfile");
    await inside("propagation", "mount -t tmpfs tmpfs /both/inner; touch /both/inner/made");
    assert.deepEqual(readdirSync(join(shared, "inner")), ["made"]);
    await inside("propagation", "mkdir /to/own; mount -t tmpfs tmpfs /to/own; touch /to/own/made");
    assert.deepEqual(readdirSync(join(shared, "own")), [], "one way only");
    site.remove("propagation");
    await site.gone("propagation");
    assert.deepEqual(readdirSync(join(shared, "late")), ["file"], "what is the user's is still there");
  });
});

it("the root directory is a shared mount, whatever the machine's own mounts are", async () => {
  const mount = { name: "data", mountPath: "/data", mountPropagation: "Bidirectional" };
  const main = shell("main", FOREVER, { volumeMounts: [mount], securityContext: { privileged: true } });
  site.write(manifest("both-ways", { containers: [main], volumes: [{ name: "data", emptyDir: {} }] }));
  const { uid } = await site.running("both-ways");
  await inside("both-ways", "mkdir /data/made; mount -t tmpfs tmpfs /data/made; touch /data/made/file");
  const made = join(podsDir, uid, "volumes/kubernetes.io~empty-dir/data/made");
  assert.deepEqual(readdirSync(made), ["file"], "the container's mount is seen on the host");
  await inside("both-ways", "umount /data/made");
  site.remove("both-ways");
  await site.gone("both-ways");
});

const HUGE_PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB";
const page = (file: string): number => Number(readFileSync(join(HUGE_PAGES, file), "utf8"));

describe("an emptyDir of huge pages", { skip: !existsSync(HUGE_PAGES) && "this kernel has no huge pages" }, () => {
  const had = existsSync(HUGE_PAGES) ? page("nr_hugepages") : 0;
  after(() => writeFileSync(join(HUGE_PAGES, "nr_hugepages"), String(had)));

  it("is memory in pages of the size that the pod asks for, and given back", async (t) => {
    writeFileSync(join(HUGE_PAGES, "nr_hugepages"), String(had + 4));
    if (page("nr_hugepages") < had + 4) return t.skip("the kernel has no free memory for huge pages");
    const free = page("free_hugepages");
    const limits = { "hugepages-2Mi": "4Mi", memory: "32Mi", cpu: "100m" };
    const volumeMounts = [{ name: "huge", mountPath: "/huge" }];
    const main = shell("main", FOREVER, { volumeMounts, resources: { limits, requests: limits } });
    const volumes = [{ name: "huge", emptyDir: { medium: "HugePages" } }];
    site.write(manifest("huge-pages", { containers: [main], volumes }));
    await site.running("huge-pages");
    const script =
      "awk '$2 == \"/huge\" {print $3, $4}' /proc/mounts; fallocate -l 4194304 /huge/pages; stat -c %s /huge/pages";
    const [mount = "", size] = (await inside("huge-pages", script)).split("\n");
    assert.match(mount, /^hugetlbfs rw.*pagesize=2M/);
    assert.equal(size, "4194304");
    assert.equal(page("free_hugepages"), free - 2);
    site.remove("huge-pages");
    await site.gone("huge-pages");
    // The kernel ends the container's view of the mounts a moment after its last process.
    await until("the pages are given back", () => page("free_hugepages") === free);
    assert.deepEqual(mountsBelow(podsDir), []);
  });
});

const containerd2 = process.env["CONTAINERD2_BIN_DIR"] ?? "";
describe("with containerd 2", { skip: containerd2 === "" && "it is not here" }, () => {
  const other = new Site();
  before(() => other.up([], { env: { ...process.env, PATH: `${containerd2}:${process.env["PATH"]}` } }));
  after(() => other.close());

  it("a recursive read-only mount is one with all that is mounted below it", async () => {
    const data = mkdtempSync(join(other.dir, "d-"));
    mkdirSync(join(data, "below"));
    sh("mount", "-t", "tmpfs", "tmpfs", join(data, "below"));
    try {
      const volumes = [{ name: "host", hostPath: { path: data } }];
      const mount = (mountPath: string, recursiveReadOnly: string): object => ({
        name: "host",
        mountPath,
        readOnly: true,
        recursiveReadOnly,
      });
      const volumeMounts = [mount("/all", "Enabled"), mount("/possible", "IfPossible"), mount("/top", "Disabled")];
      const script =
        "{ for d in all possible top; do touch /$d/below/$d /$d/$d; done; ls /top/below; echo done; } 2>&1";
      // The types of the generated fields are wider than these.
      const main = shell("main", forever(script), { volumeMounts: volumeMounts as VolumeMount[] });
      other.write(manifest("read-only", { containers: [main], volumes }));
      await other.running("read-only");
      const denied = (path: string): string => `touch: ${path}: Read-only file system\n`;
      const want = ["/all/below/all", "/all/all", "/possible/below/possible", "/possible/possible", "/top/top"];
      let words = "";
      const isWanted = async (): Promise<boolean> =>
        (words = await other.logs("read-only")) === `${want.map(denied).join("")}top\ndone\n`;
      await until("its words", isWanted, { seen: () => words });
      other.remove("read-only");
      await other.gone("read-only");
    } finally {
      sh("umount", join(data, "below"));
    }
  });

  it("an image is a volume for containers to read, whole or in part", async () => {
    const volumes = [{ name: "content", image: { reference: DEMO_IMAGE, pullPolicy: "Never" } }];
    const volumeMounts = [
      { name: "content", mountPath: "/content" },
      { name: "content", mountPath: "/part", subPath: "bin" },
    ];
    // One stream: the runtime copies stdout and stderr side by side, and their lines have no order.
    const script = "{ ls /content/bin/busybox /part/busybox; touch /content/x; echo done; } 2>&1";
    const main = shell("main", forever(script), { volumeMounts });
    other.write(manifest("image-volume", { containers: [main], volumes }));
    await other.running("image-volume");
    const want = "/content/bin/busybox\n/part/busybox\ntouch: /content/x: Read-only file system\ndone\n";
    let words = "";
    const seen = (): string => words;
    await until("its words", async () => (words = await other.logs("image-volume")) === want, { seen });
    other.remove("image-volume");
    await other.gone("image-volume");
  });
});
