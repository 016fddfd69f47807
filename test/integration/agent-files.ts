/** Manifest files on a running agent: what appears, changes, breaks and goes away, and what the pods in them do. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { stringify } from "yaml";
import { DEMO_IMAGE } from "../../src/adapters/embedded/index.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { PodEvent, PodExplanation } from "../../src/model/step.ts";
import { FOREVER, forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, ids, isRunning, requireMachine, Site } from "./support/site.ts";
import { pidsInCgroup } from "./support/traces.ts";
import { pause, until } from "./support/until.ts";

requireMachine();

const site = new Site();
let agent: Agent;

/** The manifests' directory is a link, so that it can be swapped. */
before(async () => {
  rmSync(site.pods, { recursive: true });
  mkdirSync(join(site.dir, "v1"));
  symlinkSync("v1", site.pods);
  agent = await site.up();
});
after(() => site.close());

/** A directory of the machine for this test. */
function hostDir(): string {
  return mkdtempSync(join(site.dir, "h-"));
}

function container(pod: { containers: readonly { name: string; id: string }[] }, name = "main"): string {
  return pod.containers.find((one) => one.name === name)?.id ?? "";
}

async function eventsOf(name: string): Promise<PodEvent[]> {
  return (await site.events()).filter(({ pod }) => pod.name.startsWith(`${name}-`));
}

/** Waits until a command says such words, and gives all of it. */
function tells(command: readonly string[], words: RegExp): Promise<string> {
  let last = "";
  const look = async (): Promise<string | undefined> => {
    last = (await site.run(...command)).stdout;
    return words.test(last) ? last : undefined;
  };
  return until(`${command.join(" ")} says ${words}`, look, { seen: () => last });
}

/** A volume at /data of each container. */
const mounted = { volumeMounts: [{ name: "data", mountPath: "/data" }] };

describe("the directory", () => {
  it("is swapped by its link: what stayed the same runs on, the rest follows the new one", async () => {
    const old = manifest("swapped", { containers: [shell("main", FOREVER, { env: [{ name: "V", value: "1" }] })] });
    site.write(manifest("kept"));
    site.write(old);
    site.write(manifest("dropped"));
    const kept = await site.running("kept");
    const swapped = await site.running("swapped");
    await site.running("dropped");
    const next = join(site.dir, "v2");
    mkdirSync(next);
    writeFileSync(join(next, "kept.json"), readFileSync(site.file("kept.json")));
    const changed = manifest("swapped", { containers: [shell("main", FOREVER, { env: [{ name: "V", value: "2" }] })] });
    writeFileSync(join(next, "swapped.json"), JSON.stringify(changed));
    symlinkSync("v2", join(site.dir, "new"));
    renameSync(join(site.dir, "new"), site.pods);
    await site.gone("dropped");
    await site.pod("swapped", "is the new one", (pod) => isRunning(pod) && pod.uid !== swapped.uid);
    assert.deepEqual(ids(await site.running("kept")), ids(kept));
    // A later change of a file in the new directory is seen too.
    site.remove("swapped");
    await site.gone("swapped");
  });
});

describe("manifests", { concurrency: 3 }, () => {
  it("a file appears, changes and disappears", async () => {
    site.write(manifest("plain"));
    const first = await site.running("plain");
    site.write(manifest("plain", { hostname: "changed" }));
    const second = await site.pod("plain", "is another", (pod) => isRunning(pod) && pod.uid !== first.uid);
    assert.notEqual(container(second), container(first));
    assert.deepEqual(await site.containers(first.uid), [], "nothing of the first is left");
    site.remove("plain");
    await site.gone("plain");
    assert.deepEqual(await site.sandboxes(second.uid), []);
  });

  it("several documents in one file, YAML or JSON, and lists; hidden files are ignored", async () => {
    const names = ["doc-a", "doc-b", "doc-c", "doc-d"];
    const [a, b, c, d] = names.map((name) => manifest(name));
    writeFileSync(site.file(".hidden.yaml"), stringify(manifest("hidden")));
    writeFileSync(site.file("two.yaml"), `# two of them\n${stringify(a)}---\n${stringify(b)}---\n`);
    writeFileSync(site.file("list.json"), JSON.stringify({ apiVersion: "v1", kind: "List", items: [c] }));
    const { apiVersion: _1, kind: _2, ...bare } = d ?? manifest("");
    writeFileSync(site.file("pods.yaml"), stringify({ apiVersion: "v1", kind: "PodList", items: [bare] }));
    for (const name of names) await site.running(name);
    assert.equal(await site.find("hidden"), undefined);
    // Leaving a document out ends its pod, and only that.
    const before = await site.running("doc-a");
    writeFileSync(site.file("two.yaml"), stringify(a));
    await site.gone("doc-b");
    assert.deepEqual(ids(await site.running("doc-a")), ids(before));
    for (const name of ["two.yaml", "list.json", "pods.yaml", ".hidden.yaml"]) unlinkSync(site.file(name));
    for (const name of names) await site.gone(name);
  });

  it("a file that is removed and back within a millisecond restarts its pod", async () => {
    const path = hostDir();
    const volumes = [{ name: "data", hostPath: { path } }];
    // It ends only when the file is back, however long the test itself was held up between the two.
    const script = FOREVER.replace("exit 0", "until [ -e /data/back ]; do sleep 0.1; done; exit 0");
    const spec = { containers: [shell("main", script, mounted)], volumes, terminationGracePeriodSeconds: 30 };
    const file = site.write(manifest("blink", spec));
    const before = await site.running("blink");
    const content = readFileSync(file);
    unlinkSync(file);
    writeFileSync(file, content);
    const isWantedAgain = ({ state, source }: PodExplanation): boolean => state === "Terminating" && source === "file";
    await site.pod("blink", "ends, and is wanted again", isWantedAgain);
    writeFileSync(join(path, "back"), "");
    const isBack = (id: string): boolean => id !== "" && id !== container(before);
    const now = await site.pod("blink", "is back", (pod) => isRunning(pod) && isBack(container(pod)));
    assert.equal(now.uid, before.uid);
    assert.equal(now.restarts, 1);
    site.remove("blink");
    await site.gone("blink");
  });

  it("the same content under a new inode does nothing", async () => {
    const file = site.write(manifest("same"));
    const before = await site.running("same");
    await site.event("Started", "same");
    const told = (await eventsOf("same")).length;
    for (let i = 0; i < 3; i++) {
      writeFileSync(site.file(".same.tmp"), readFileSync(file));
      renameSync(site.file(".same.tmp"), file);
    }
    // Another order of keys is the same content too.
    writeFileSync(site.file(".same.tmp"), stringify(Object.fromEntries(Object.entries(manifest("same")).reverse())));
    renameSync(site.file(".same.tmp"), file);
    // What comes after it has been seen, so it has been seen.
    site.write(manifest("marker"));
    await site.running("marker");
    const now = await site.running("same");
    assert.deepEqual([now.uid, ids(now), now.restarts], [before.uid, ids(before), 0]);
    assert.equal((await eventsOf("same")).length, told);
    for (const name of ["same", "marker"]) site.remove(name);
    for (const name of ["same", "marker"]) await site.gone(name);
  });

  const whole = stringify(manifest("robust"));
  const alias = Array.from({ length: 12 }, (_, i) => `l${i}: &l${i} [${`*l${i - 1},`.repeat(i === 0 ? 0 : 9)}x]`).join(
    "\n",
  );
  const bad: readonly (readonly [string, string | Buffer, RegExp])[] = [
    ["empty", "", /empty/],
    ["no YAML", "apiVersion: v1\nkind: [Pod\n", /./],
    ["half written", whole.slice(0, whole.indexOf("image:")), /./],
    ["a bomb of aliases", `${alias}\n${whole}`, /alias/i],
    ["10 MiB of junk", Buffer.alloc(10 * 1024 * 1024, "{[junk"), /./],
    ["more than 10 MiB", Buffer.alloc(10 * 1024 * 1024 + 1, "x"), /too large/],
    ["binary", Buffer.from([0, 1, 2, 255, 254]), /./],
  ];
  it("a broken file keeps its last good pod and is reported", async () => {
    const file = join(site.pods, "robust.yaml");
    writeFileSync(file, whole);
    const before = await site.running("robust");
    for (const [what, content, words] of bad) {
      const since = Math.max(0, ...(await site.events()).map(({ sequence }) => sequence));
      writeFileSync(file, content);
      await until(`a report about ${what}`, async () =>
        (await site.events()).find(
          ({ reason, pod, message, sequence }) =>
            reason === "InvalidManifest" && sequence > since && pod.name.startsWith(file) && words.test(message),
        ),
      );
      const now = await site.running("robust");
      assert.deepEqual(ids(now), ids(before), what);
    }
    const { stdout } = await site.run("events");
    assert.match(stdout, /Warning +InvalidManifest +\S*robust\.yaml/);
    // Written in two halves with a pause between them: only the whole counts.
    const changed = stringify(manifest("robust", { hostname: "whole" }));
    writeFileSync(file, changed.slice(0, changed.length / 2));
    await pause(100);
    writeFileSync(file, changed);
    await site.pod("robust", "is the new one", (pod) => isRunning(pod) && pod.uid !== before.uid);
    unlinkSync(file);
    await site.gone("robust");
  });

  it("of two files with one pod name the first counts, until it goes", async () => {
    const file = site.write(manifest("double", { hostname: "second" }), "double-2.json");
    site.write(manifest("double", { hostname: "first" }), "double-1.json");
    await site.event("InvalidManifest", file, /is in double-1\.json already/);
    const first = await site.pod("double", "runs as the first", isRunning);
    site.remove("double", "double-1.json");
    const second = await site.pod("double", "is the second", (pod) => isRunning(pod) && pod.uid !== first.uid);
    assert.deepEqual(await site.sandboxes(first.uid), []);
    assert.equal((await site.sandboxes(second.uid)).length, 1);
    site.remove("double", "double-2.json");
    await site.gone("double");
  });

  it("an unknown field is a warning, and the pod runs", async () => {
    const odd = { ...manifest("odd"), spec: { ...manifest("odd").spec, colour: "green" } };
    writeFileSync(site.file("odd.json"), JSON.stringify(odd));
    const { warnings } = await site.running("odd");
    assert.match(warnings.join("\n"), /colour/);
    assert.match((await site.run("explain", "odd")).stdout, /^Warnings\n.*colour/m);
    site.remove("odd");
  });
});

describe("containers", { concurrency: 3 }, () => {
  it("another image restarts only its container", async () => {
    // Without a UID of its own any change makes another pod.
    const uid = "5a1e0000-0000-0000-0000-000000000001";
    const other = `${DEMO_IMAGE.split(":")[0]}:2`;
    const tag = ["-a", site.layout.socket, "-n", "k8s.io", "images", "tag", DEMO_IMAGE, other];
    assert.equal(spawnSync("ctr", tag).status, 0);
    await until("the runtime knows the tag", async () => {
      const { stdout } = spawnSync("ctr", ["-a", site.layout.socket, "-n", "k8s.io", "images", "ls", "-q"]);
      return String(stdout).includes(other);
    });
    const pod = (image: string): Pod =>
      manifest("images", { containers: [shell("same", FOREVER), shell("other", FOREVER, { image })] }, { uid });
    site.write(pod(DEMO_IMAGE));
    const before = await site.running("images");
    site.write(pod(other));
    const isNew = (id: string): boolean => id !== "" && id !== container(before, "other");
    const now = await site.pod("images", "has the other image", (p) => isRunning(p) && isNew(container(p, "other")));
    assert.equal(container(now, "same"), container(before, "same"));
    assert.deepEqual(
      now.containers.map(({ name, restarts }) => [name, restarts]),
      [
        ["same", 0],
        ["other", 1],
      ],
    );
    site.remove("images");
  });

  const once = "if [ -e /data/seen ]; then exit 0; fi; touch /data/seen; exit 4";
  const volumes = [{ name: "data", emptyDir: {} }];
  it("restart policy Never: the pod fails or succeeds with its first exit", async () => {
    site.write(manifest("never-bad", { restartPolicy: "Never", containers: [shell("main", "exit 3")] }));
    site.write(manifest("never-good", { restartPolicy: "Never", containers: [shell("main", "exit 0")] }));
    const bad = await site.pod("never-bad", "failed", ({ phase }) => phase === "Failed");
    const good = await site.pod("never-good", "succeeded", ({ phase }) => phase === "Succeeded");
    const facts = [bad, good].map(({ containers: [one] }) => [one?.reason, one?.exitCode, one?.restarts]);
    assert.deepEqual(facts, [
      ["Error", 3, 0],
      ["Completed", 0, 0],
    ]);
    for (const name of ["never-bad", "never-good"]) site.remove(name);
  });

  it("restart policy OnFailure: restarted after a failure, done after a success", async () => {
    site.write(manifest("onfail", { restartPolicy: "OnFailure", containers: [shell("main", once, mounted)], volumes }));
    const pod = await site.pod("onfail", "succeeded", ({ phase }) => phase === "Succeeded");
    assert.equal(pod.restarts, 1);
    site.remove("onfail");
  });

  it("restart policy Always: a container that exits at once is restarted, then waits longer and longer", async () => {
    site.write(manifest("always", { restartPolicy: "Always", containers: [shell("main", "exit 0")] }));
    const isWaiting = ({ state, next }: PodExplanation): boolean =>
      state === "CrashLoopBackOff" && (next?.at ?? 0) > Date.now();
    const pod = await site.pod("always", "waits for a time to come", isWaiting);
    assert.equal(pod.phase, "Running");
    assert.equal(pod.restarts, 1, "the first restart is at once");
    assert.equal(pod.containers[0]?.exitCode, 0);
    // On a slow machine it may be tried in between; it then waits again, and longer.
    await tells(["explain", "always"], /^Next try +in \d+s, main: CrashLoopBackOff$/m);
    await tells(["ps"], /always-\S+ +0\/1 +CrashLoopBackOff +\d+ /);
    await site.event("BackOff", "always", /Back-off restarting failed container main/);
    site.remove("always");
    await site.gone("always");
  });

  it("an image that nobody has is tried again later, and explain says when", async () => {
    site.write(
      manifest("no-image", {
        containers: [
          shell("pulled", "", { image: "127.0.0.1:1/nobody/has:it", imagePullPolicy: "IfNotPresent" }),
          shell("local", "", { image: "kubelet.local/nobody:1" }),
        ],
      }),
    );
    await site.pod("no-image", "waits for a time to come", ({ next, containers: [pulled, local] }) => {
      const isWaiting = pulled?.reason === "ImagePullBackOff" && local?.reason === "ErrImageNeverPull";
      return isWaiting && (next?.at ?? 0) > Date.now();
    });
    const stdout = await tells(["explain", "no-image"], /^Next try +in \d+s, /m);
    assert.match(stdout, /127\.0\.0\.1:1\/nobody\/has:it/);
    assert.match(stdout, /^Errors$/m);
    await site.event("Failed", "no-image", /Error: ErrImagePull/);
    site.remove("no-image");
    await site.gone("no-image");
  });

  it("a command that does not exist is said with its name", async () => {
    const command = ["/no/such/program"];
    site.write(manifest("no-command", { containers: [shell("main", "", { command })] }));
    const pod = await site.pod("no-command", "cannot start", ({ errors }) => errors.length > 0);
    assert.match(pod.errors.map(({ message }) => message).join(), /\/no\/such\/program/);
    await site.pod("no-command", "waits", ({ state }) => /RunContainerError|CrashLoopBackOff/.test(state));
    assert.match((await site.run("explain", "no-command")).stdout, /\/no\/such\/program/);
    site.remove("no-command");
    await site.gone("no-command");
  });

  it("init containers run one after the other before the others", async () => {
    const words = (name: string): string =>
      `echo ${name} >> /data/words; sleep 0.2; echo ${name} is done >> /data/words`;
    site.write(
      manifest("inits", {
        initContainers: [shell("one", words("one"), mounted), shell("two", words("two"), mounted)],
        containers: [shell("main", forever("cat /data/words"), mounted)],
        volumes,
      }),
    );
    const pod = await site.running("inits");
    assert.deepEqual(
      pod.containers.map(({ name, kind, state, reason }) => [name, kind, state, reason]),
      [
        ["one", "init", "terminated", "Completed"],
        ["two", "init", "terminated", "Completed"],
        ["main", "regular", "running", ""],
      ],
    );
    await until("its words", async () => (await site.logs("inits")) === "one\none is done\ntwo\ntwo is done\n");
    site.remove("inits");
  });

  it("an init container that fails is run again, or fails the pod if the policy says Never", async () => {
    const containers = [shell("main", FOREVER)];
    const initContainers = [shell("prepare", once, mounted)];
    site.write(manifest("init-again", { initContainers, containers, volumes }));
    site.write(manifest("init-never", { restartPolicy: "Never", initContainers, containers, volumes }));
    const again = await site.running("init-again");
    assert.deepEqual(
      again.containers.map(({ restarts }) => restarts),
      [1, 0],
    );
    const never = await site.pod("init-never", "failed", ({ phase }) => phase === "Failed");
    assert.equal(never.containers[0]?.exitCode, 4);
    assert.equal(never.containers[1]?.id, "", "the other never began");
    for (const name of ["init-again", "init-never"]) site.remove(name);
  });

  it("env: references to other variables and to the pod's own fields", async () => {
    const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
    const env = [
      field("POD", "metadata.name"),
      field("IP", "status.podIP"),
      field("LABEL", "metadata.labels['app']"),
      { name: "WHERE", value: "$(POD) at $(IP)" },
      { name: "RAW", value: "$$(POD) $(NOBODY)" },
    ];
    const script = 'echo "$WHERE"; echo "$RAW"; echo "$LABEL $1"';
    const main = shell("main", "", {
      command: ["/bin/sh", "-c", script, "sh", "$(POD)"],
      env,
    });
    site.write(manifest("env", { restartPolicy: "Never", containers: [main] }, { labels: { app: "shown" } }));
    const pod = await site.pod("env", "succeeded", ({ phase }) => phase === "Succeeded");
    assert.match(pod.ip, /^\d/);
    const words = `${pod.name} at ${pod.ip}\n$(POD) $(NOBODY)\nshown ${pod.name}\n`;
    await until("its words", async () => (await site.logs("env")) === words);
    site.remove("env");
  });

  it("the termination message comes from its file, or from the log if the pod asks for that", async () => {
    const fallback = { terminationMessagePolicy: "FallbackToLogsOnError" };
    const containers = [
      shell("file", "echo -n 'the disk is on fire' > /dev/termination-log; exit 1"),
      shell("log", "echo first; echo 'last words'; exit 1", fallback),
    ];
    site.write(manifest("message", { restartPolicy: "Never", containers }));
    const pod = await site.pod("message", "failed", ({ phase }) => phase === "Failed");
    assert.deepEqual(
      pod.containers.map(({ message }) => message.trim()),
      ["the disk is on fire", "first\nlast words"],
    );
    site.remove("message");
  });

  it("a pod on the host's network is in the host's namespace and has the host's address", async () => {
    const main = shell("main", forever("readlink /proc/self/ns/net"));
    site.write(manifest("hostnet", { hostNetwork: true, containers: [main] }));
    const pod = await site.running("hostnet");
    await until("its words", async () => (await site.logs("hostnet")) === `${readlinkSync("/proc/self/ns/net")}\n`);
    const links = Object.entries(networkInterfaces()).filter(([name]) => name !== site.layout.bridge);
    const addresses = links.flatMap(([, list]) => (list ?? []).map(({ address }) => address));
    assert.ok(addresses.includes(pod.ip), `${pod.ip} is none of ${addresses}`);
    site.remove("hostnet");
  });
});

describe("volumes, logs and the end", { concurrency: 3 }, () => {
  it("a hostPath is made where asked for, shared, and left alone when the pod goes", async () => {
    const path = join(hostDir(), "made");
    const volumes = [{ name: "data", hostPath: { path, type: "DirectoryOrCreate" } }];
    const main = shell("main", forever("echo mine > /data/file"), mounted);
    site.write(manifest("host-path", { containers: [main], volumes }));
    const { uid } = await site.running("host-path");
    const isWritten = (): boolean =>
      existsSync(join(path, "file")) && readFileSync(join(path, "file"), "utf8") === "mine\n";
    await until("the file", isWritten);
    site.remove("host-path");
    await site.gone("host-path");
    assert.equal(existsSync(join(site.state, "kubelet/pods", uid)), false);
    assert.equal(readFileSync(join(path, "file"), "utf8"), "mine\n");
  });

  it("a hostPath of another type than asked for keeps the pod from starting, until it is mended", async () => {
    const path = join(hostDir(), "thing");
    mkdirSync(path);
    writeFileSync(join(path, "precious"), "");
    const volumes = [{ name: "data", hostPath: { path, type: "File" } }];
    site.write(manifest("wrong-type", { containers: [shell("main", FOREVER, mounted)], volumes }));
    await site.event("FailedMount", "wrong-type", /hostPath type check failed: .*is not a file/);
    const pod = await site.pod("wrong-type", "waits", ({ next }) => next !== undefined);
    assert.equal(pod.phase, "Pending");
    assert.ok(existsSync(join(path, "precious")));
    renameSync(path, `${path}.away`);
    writeFileSync(path, "");
    await site.running("wrong-type");
    site.remove("wrong-type");
    await site.gone("wrong-type");
  });

  it("containers share an emptyDir, on disk or in memory", async () => {
    const volumes = [
      { name: "disk", emptyDir: {} },
      { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
    ];
    const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
    const writer = shell("writer", forever("echo one > /disk/word; echo two > /memory/word"), { volumeMounts });
    const wait = "while ! [ -s /disk/word -a -s /memory/word ]; do sleep 0.1; done";
    // By its size: the state directory itself may lie on a tmpfs.
    const show =
      "cat /disk/word /memory/word; awk '$2 ~ /^.(disk|memory)$/ && $4 ~ /size=1024k/ {print $2}' /proc/mounts";
    const reader = shell("reader", forever(`${wait}; ${show}`), { volumeMounts });
    site.write(manifest("empty-dirs", { containers: [writer, reader], volumes }));
    await site.running("empty-dirs");
    await until("its words", async () => (await site.logs("empty-dirs", "-c", "reader")) === "one\ntwo\n/memory\n");
    site.remove("empty-dirs");
  });

  it("logs lie in the standard layout, with a link for each container", async () => {
    site.write(manifest("layout", { containers: [shell("main", forever("echo to stdout; echo to stderr >&2"))] }));
    const pod = await site.running("layout");
    const file = join(site.state, "log/pods", `default_${pod.name}_${pod.uid}`, "main/0.log");
    const lines = (): string[] => readFileSync(file, "utf8").trimEnd().split("\n").sort();
    await until("both lines", () => lines().length === 2);
    for (const line of lines())
      assert.match(line, /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d) std(out|err) F to std\2$/);
    const id = container(pod).replace("containerd://", "");
    const link = join(site.state, "log/containers", `${pod.name}_default_main-${id}.log`);
    assert.equal(readlinkSync(link), file);
    site.remove("layout");
  });

  it("a container is told to stop, has its grace, and no more than that", async () => {
    const path = hostDir();
    const volumes = [{ name: "data", hostPath: { path } }];
    const seen = "until [ -e /data/seen ]; do sleep 0.1; done";
    const slow = (name: string, seconds: number): string =>
      `trap 'echo told > /data/${name}; sleep ${seconds}; ${seen}; echo done >> /data/${name}; exit 0' TERM; touch /data/${name}.up; while :; do sleep 0.1; done`;
    const pods = [
      { name: "patient", seconds: 3, grace: 30, left: "told\ndone\n" },
      { name: "stubborn", seconds: 60, grace: 5, left: "told\n" },
    ];
    for (const { name, seconds, grace } of pods) {
      const containers = [shell("main", slow(name, seconds), mounted)];
      site.write(manifest(name, { containers, volumes, terminationGracePeriodSeconds: grace }));
    }
    for (const { name } of pods) await site.running(name);
    // Before it listens to the signal it would not hear it.
    for (const { name } of pods) await until(`${name} listens`, () => existsSync(join(path, `${name}.up`)));
    for (const { name } of pods) site.remove(name);
    await site.pod("patient", "is on its way out", ({ state }) => state === "Terminating");
    writeFileSync(join(path, "seen"), "");
    for (const { name, left } of pods) {
      await site.gone(name);
      assert.equal(readFileSync(join(path, name), "utf8"), left, name);
    }
  });

  it("a removed pod leaves nothing: containers, sandbox, volumes, cgroup, logs", async () => {
    const volumes = [
      { name: "data", emptyDir: {} },
      { name: "memory", emptyDir: { medium: "Memory" } },
    ];
    site.write(
      manifest("leaves", { containers: [shell("main", forever("echo here; echo x > /data/x"), mounted)], volumes }),
    );
    const { uid, name } = await site.running("leaves");
    const found = async (): Promise<Record<string, number>> => ({
      containers: (await site.containers(uid)).length,
      sandboxes: (await site.sandboxes(uid)).length,
      mounts: readFileSync("/proc/self/mountinfo", "utf8").split(uid).length - 1,
      processes: pidsInCgroup(`pod${uid}`).length,
      directory: existsSync(join(site.state, "kubelet/pods", uid)) ? 1 : 0,
      logs: readdirSync(join(site.state, "log/pods")).filter((entry) => entry.includes(uid)).length,
      links: readdirSync(join(site.state, "log/containers")).filter((entry) => entry.startsWith(name)).length,
      cgroups: podCgroups(uid).length,
    });
    for (const [kind, count] of Object.entries(await found())) assert.ok(count > 0, `${kind} before`);
    site.remove("leaves");
    await site.gone("leaves");
    for (const [kind, count] of Object.entries(await found())) assert.equal(count, 0, kind);
  });
});

describe("after all that", () => {
  it("the agent still runs, and wrote nothing about bugs", () => {
    assert.ok(!agent.isOver);
    assert.equal(agent.stderr, "");
  });
});

/** Directories of the pod's cgroup: one with version 2, one in each hierarchy with version 1. */
function podCgroups(uid: string): string[] {
  const root = "/sys/fs/cgroup";
  const hierarchies = [root, ...readdirSync(root).map((name) => join(root, name))];
  const classes = ["", "burstable", "besteffort"];
  return hierarchies
    .flatMap((hierarchy) => classes.map((one) => join(hierarchy, site.layout.cgroupRoot, "kubepods", one, `pod${uid}`)))
    .filter((path) => existsSync(path));
}
