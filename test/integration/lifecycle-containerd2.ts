/** What only a newer runtime has: signals to stop with, strict groups, recursive read-only mounts, user namespaces. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Container, Pod, PodStatus } from "../../src/model/generated/types.ts";
import { whyNoCheckpoints } from "./support/criu.ts";
import { importImage, testerFiles } from "./support/images.ts";
import { ClientAuthority, MainPort } from "./support/main-port.ts";
import { forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, ids, requireMachine, Site } from "./support/site.ts";
import { said, statusOf } from "./support/told.ts";
import { until } from "./support/until.ts";

requireMachine();

const bin = process.env["CONTAINERD2_BIN_DIR"] ?? "";
/** A newer runc than the system's may be named: user namespaces need 1.2. */
const PATH = [bin, process.env["RUNC_BIN_DIR"], process.env["PATH"]]
  .filter((part) => part !== undefined && part !== "")
  .join(":");
const { signal } = new AbortController();

/** An image whose own group file puts its user into one more group. */
const GROUPED_IMAGE = "kubelet.local/grouped:1";

describe("on containerd 2", { skip: bin === "" && "CONTAINERD2_BIN_DIR names none" }, () => {
  const site = new Site();
  const authority = new ClientAuthority(site.dir, "ca");
  let agent: Agent;

  const status = (name: string): Promise<PodStatus | undefined> => statusOf(agent, name);
  const gone = async (name: string): Promise<void> => {
    site.remove(name);
    await site.gone(name);
  };

  before(async () => {
    // Whoever is another user inside still has to find the way to its files.
    for (const path of [site.dir, dirname(site.dir)]) if (statSync(path).mode % 8 === 0) chmodSync(path, 0o711);
    agent = await site.up([`--client-ca-file=${authority.path}`], { env: { ...process.env, PATH } });
    await importImage(site, { name: GROUPED_IMAGE, files: testerFiles(), env: ["PATH=/bin"] }, join(bin, "ctr"));
  });
  after(() => site.close());

  it("a container is told to stop by the signal that it names, and the status says which", async () => {
    const mark = join(site.dir, "signals");
    mkdirSync(mark);
    const script =
      "trap 'echo usr1 >> /mark/got; exit 0' USR1; trap 'echo term >> /mark/got' TERM; echo ready; while :; do sleep 0.1; done";
    const volumeMounts = [{ name: "mark", mountPath: "/mark" }];
    const main = shell("main", script, { lifecycle: { stopSignal: "SIGUSR1" }, volumeMounts });
    const volumes = [{ name: "mark", hostPath: { path: mark } }];
    const spec = { containers: [main], volumes, os: { name: "linux" }, terminationGracePeriodSeconds: 20 };
    site.write(manifest("signalled", spec));
    await site.running("signalled");
    await said(site, "signalled", /ready/);
    assert.equal((await status("signalled"))?.containerStatuses?.[0]?.stopSignal, "SIGUSR1");
    await gone("signalled");
    assert.equal(readFileSync(join(mark, "got"), "utf8"), "usr1\n");
  });

  it("a running container is written to an archive and goes on", { skip: whyNoCheckpoints() }, async () => {
    const script = "n=0; while :; do n=$((n + 1)); echo $n; sleep 0.2; done";
    site.write(manifest("frozen", { containers: [shell("main", script)] }));
    const { uid } = await site.running("frozen");
    await said(site, "frozen", /^3$/m);
    const [before] = await site.containers(uid);
    const ann = new MainPort(agent.mainPort, authority.issue("ann"));
    const { status: code, body } = await ann.ask("/checkpoint/default/frozen-here/main", "POST");
    assert.equal(code, 200, body);
    const [path = ""] = (JSON.parse(body) as { items: readonly string[] }).items;
    assert.match(path, /\/checkpoints\/checkpoint-frozen-here_default-main-[^/]+\.tar$/);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const names = execFileSync("tar", ["-tf", path], { encoding: "utf8" }).split("\n");
    for (const name of ["config.dump", "spec.dump", "checkpoint/"]) assert.ok(names.includes(name), names.join(" "));
    const count = (await said(site, "frozen", /\d/)).trim().split("\n").length;
    await said(site, "frozen", new RegExp(`^${count + 3}$`, "m"));
    const [after] = await site.containers(uid);
    assert.equal(after?.id, before?.id);
    await gone("frozen");
  });

  it("groups of the image count with Merge, and do not with Strict", async () => {
    const grouped = (policy: string): Pod => {
      const main: Container = { ...shell("main", "id -G; sleep 3600"), image: GROUPED_IMAGE };
      const securityContext = { runAsUser: 1000, supplementalGroups: [5000], supplementalGroupsPolicy: policy };
      return manifest(`groups-${policy.toLowerCase()}`, { containers: [main], securityContext });
    };
    site.write(grouped("Merge"));
    site.write(grouped("Strict"));
    const merged = await said(site, "groups-merge", /\d/);
    const strict = await said(site, "groups-strict", /\d/);
    assert.deepEqual(merged.trim().split(" ").map(Number).sort(), [1000, 4000, 5000]);
    assert.deepEqual(strict.trim().split(" ").map(Number).sort(), [1000, 5000]);
    // What it said may be read before the agent has read its status.
    await site.running("groups-strict");
    const user = (await status("groups-strict"))?.containerStatuses?.[0]?.user?.linux;
    assert.deepEqual([user?.uid, user?.gid, user?.supplementalGroups?.toSorted()], [1000, 1000, [1000, 5000]]);
    await Promise.all([gone("groups-merge"), gone("groups-strict")]);
  });

  it("read-only goes down into what is mounted below, where the mount asks for it", async () => {
    const outer = join(site.dir, "outer");
    const inner = join(outer, "inner");
    mkdirSync(inner, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "inner", inner]);
    try {
      const touch = (path: string): string =>
        `if touch ${path}/inner/x 2>/dev/null; then echo ${path} open; else echo ${path} shut; fi`;
      const mounted = { name: "tree", readOnly: true };
      const main = shell("main", forever(["/plain", "/deep", "/able"].map(touch).join("\n")), {
        volumeMounts: [
          { ...mounted, mountPath: "/plain" },
          { ...mounted, mountPath: "/deep", recursiveReadOnly: "Enabled" },
          { ...mounted, mountPath: "/able", recursiveReadOnly: "IfPossible" },
        ],
      });
      site.write(manifest("recursive", { containers: [main], volumes: [{ name: "tree", hostPath: { path: outer } }] }));
      assert.equal(await said(site, "recursive", /\/able/), "/plain open\n/deep shut\n/able shut\n");
      await site.running("recursive");
      const mounts = (await status("recursive"))?.containerStatuses?.[0]?.volumeMounts ?? [];
      const modes = Object.fromEntries(
        mounts.map(({ mountPath, recursiveReadOnly }) => [mountPath, recursiveReadOnly]),
      );
      assert.deepEqual(modes, { "/plain": "Disabled", "/deep": "Enabled", "/able": "Enabled" });
      await gone("recursive");
    } finally {
      execFileSync("umount", [inner]);
    }
  });

  it("an ephemeral container joins the processes of a running one, and ends once", async () => {
    const uid = "debugged-1";
    const plain = manifest("debugged", { containers: [shell("main", forever("sleep 7654 &"))] }, { uid });
    site.write(plain);
    const first = await site.running("debugged");
    const look = { ...shell("look", "ps; exit 3"), targetContainerName: "main" };
    const apart = shell("apart", "ps; exit 0");
    site.write({ ...plain, spec: { ...plain.spec, ephemeralContainers: [look, apart] } });
    const ended = await until("both have ended", async () => {
      const all = (await status("debugged"))?.ephemeralContainerStatuses ?? [];
      return all.filter(({ state }) => state?.terminated !== undefined).length === 2 ? all : undefined;
    });
    assert.deepEqual(
      ended.map(({ name, restartCount, state }) => [name, restartCount, state?.terminated?.exitCode]),
      [
        ["apart", 0, 0],
        ["look", 0, 3],
      ],
    );
    await said(site, "debugged/look", /sleep 7654/);
    assert.doesNotMatch(await site.logs("debugged", "-c", "apart"), /sleep 7654/);
    const second = await site.running("debugged");
    assert.equal(ids(second)["main"], ids(first)["main"]);
    await gone("debugged");
  });

  it("a pod with its own users: the ids are shifted, and volumes can be used all the same", async (t) => {
    const { handlers } = await site.cri.status({ signal });
    if (!handlers.some(({ name, userNamespaces }) => name === "" && userNamespaces)) {
      t.skip("runc says that it cannot map the ids of mounts (it can from 1.2 on)");
      return;
    }
    const shared = join(site.dir, "shared");
    mkdirSync(shared);
    writeFileSync(join(shared, "given"), "by the host\n");
    const script = [
      "cat /proc/self/uid_map | tr -s ' '; id -u",
      "cat /shared/given /config/word; echo hosts: $(grep -c localhost /etc/hosts)",
      "echo data > /data/file && echo back > /shared/back && stat -c %u:%g /data/file /shared/given",
      "echo over > /dev/termination-log && echo end",
    ];
    const volumeMounts = [
      { name: "shared", mountPath: "/shared" },
      { name: "data", mountPath: "/data" },
      { name: "info", mountPath: "/config" },
    ];
    const containers = [shell("main", forever(script.join("\n")), { volumeMounts })];
    const item = { path: "word", fieldRef: { fieldPath: "metadata.namespace" } };
    const volumes = [
      { name: "shared", hostPath: { path: shared } },
      { name: "data", emptyDir: {} },
      { name: "info", downwardAPI: { items: [item] } },
    ];
    site.write(manifest("shifted", { containers, volumes, hostUsers: false }));
    site.write(manifest("shifted-too", { hostUsers: false }));
    const { uid } = await site.running("shifted");
    const other = await site.running("shifted-too");
    const lines = (await said(site, "shifted", /end\n/)).trim().split("\n");
    const [inside, outside, length] = (lines[0] ?? "").trim().split(" ").map(Number);
    assert.deepEqual([inside, length], [0, 65_536]);
    assert.ok((outside ?? 0) >= 65_536 && (outside ?? 0) % 65_536 === 0, lines[0]);
    assert.deepEqual(lines.slice(1), ["0", "by the host", "defaulthosts: 2", "0:0", "0:0", "end"]);
    const main = await mainPid(site, uid);
    assert.equal(statSync(`/proc/${main}`).uid, outside);
    assert.notEqual(
      readFileSync(`/proc/${await mainPid(site, other.uid)}/uid_map`, "utf8")
        .trim()
        .split(/\s+/)[1],
      String(outside),
    );
    // What the pod wrote belongs to the host's own ids: the mount shifts them back.
    assert.equal(statSync(join(shared, "back")).uid, 0);
    const kept = join(site.state, "kubelet/pods", uid, "userns");
    assert.ok(existsSync(kept), kept);
    await agent.end("SIGTERM");
    agent = await site.up([], { env: { ...process.env, PATH } });
    assert.equal(await mainPid(site, (await site.running("shifted")).uid), main);
    await Promise.all([gone("shifted"), gone("shifted-too")]);
    assert.ok(!existsSync(kept));
  });
});

/** The first process of the pod's only container, as the host sees it. */
async function mainPid(site: Site, uid: string): Promise<number> {
  const [container] = await site.containers(uid);
  const words = ["-a", site.layout.socket, "-n", "k8s.io", "tasks", "list"];
  const lines = execFileSync(join(bin, "ctr"), words, { encoding: "utf8" }).split("\n");
  const line = lines.find((one) => one.startsWith(container?.id ?? "none"));
  return Number(line?.trim().split(/\s+/)[1]);
}
