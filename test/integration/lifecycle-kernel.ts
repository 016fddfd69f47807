/** What only some kernels and machines have: AppArmor, huge pages, and the right to lower the score of a process. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { hasAppArmor } from "../../src/adapters/host/node-facts.ts";
import type { PodSpec, ResourceRequirements } from "../../src/model/generated/types.ts";
import { forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, requireMachine, Site } from "./support/site.ts";
import { said, statusOf } from "./support/told.ts";

requireMachine();

const MIB = 2 ** 20;
const PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB";
const CAP_SYS_RESOURCE = 1n << 24n;
const PROFILE = "kubelet-ts-test-shut";

function whyNoAppArmor(): string | false {
  if (!hasAppArmor()) return "this kernel has no AppArmor, or it is off";
  return existsSync("/sbin/apparmor_parser") ? false : "there is no apparmor_parser";
}

function whyNoHugePages(): string | false {
  const pages = existsSync(PAGES) ? Number(readFileSync(join(PAGES, "free_hugepages"), "utf8")) : 0;
  if (pages < 8) return "this machine has fewer than 8 free huge pages of 2 MiB";
  const has = existsSync("/sys/fs/cgroup/cgroup.controllers")
    ? readFileSync("/sys/fs/cgroup/cgroup.controllers", "utf8").includes("hugetlb")
    : existsSync("/sys/fs/cgroup/hugetlb");
  return has ? false : "this kernel has no hugetlb controller";
}

function whyNoLowScores(): string | false {
  const effective = /^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0";
  return (BigInt(`0x${effective}`) & CAP_SYS_RESOURCE) === 0n && "no process may lower its score here";
}

describe("what only some kernels have", () => {
  const site = new Site();
  let agent: Agent;

  /** What the script of a pod's only container said; the pod is gone afterwards. */
  const inside = async (name: string, script: string, more: Partial<PodSpec> & { resources?: object }) => {
    const { resources, ...spec } = more;
    const mounts = (spec.volumes ?? []).map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` }));
    const main = shell("main", forever(`{ ${script}\n} 2>&1; echo end`), {
      volumeMounts: mounts,
      ...(resources && { resources: resources as ResourceRequirements }), // reason: tables of plain words
    });
    site.write(manifest(name, { ...spec, containers: [main] }));
    const words = await said(site, name, /^end$/m);
    site.remove(name);
    await site.gone(name);
    return words.trimEnd().split("\n").slice(0, -1);
  };

  before(async () => {
    agent = await site.up();
  });
  after(() => site.close());

  describe("AppArmor", { skip: whyNoAppArmor() }, () => {
    const look = "cat /proc/self/attr/current";
    const profile = (type: string, localhostProfile?: string): Partial<PodSpec> => ({
      securityContext: { appArmorProfile: { type, ...(localhostProfile && { localhostProfile }) } },
    });
    const rules = join(site.dir, "profile");
    const parser = (...args: string[]) => execFileSync("/sbin/apparmor_parser", [...args, "--skip-cache", rules]);

    before(() => {
      const allowed = ["file", "network", "capability", "signal", "ptrace", "unix", "mount", "umount"];
      const lines = [...allowed, "deny /tmp/shut w"].map((rule) => `  ${rule},`);
      const flags = "flags=(attach_disconnected,mediate_deleted)";
      writeFileSync(rules, `profile ${PROFILE} ${flags} {\n${lines.join("\n")}\n}\n`);
      parser("--replace");
    });
    after(() => parser("--remove"));

    it("a profile of this node forbids what it says", async () => {
      const script = `${look}; echo 1 > /tmp/shut || echo refused; echo 2 > /tmp/open && cat /tmp/open`;
      const lines = await inside("armored", script, profile("Localhost", PROFILE));
      assert.equal(lines[0], `${PROFILE} (enforce)`);
      assert.match(lines.slice(1).join("\n"), /shut: Permission denied\nrefused\n2$/);
    });

    it("the runtime's own profile, or none, is what the container has", async () => {
      assert.match((await inside("armored-default", look, profile("RuntimeDefault")))[0] ?? "", /containerd.*enforce/);
      assert.deepEqual(await inside("unarmored", look, profile("Unconfined")), ["unconfined"]);
    });

    it("a profile that is not loaded keeps the container from being made, and is named", async () => {
      site.write(manifest("misarmored", profile("Localhost", "kubelet-ts-no-such-profile")));
      await site.pod("misarmored", "waits", ({ state }) => state === "CreateContainerError");
      const waiting = (await statusOf(agent, "misarmored"))?.containerStatuses?.[0]?.state?.waiting;
      assert.match(waiting?.message ?? "", /apparmor profile not found "?kubelet-ts-no-such-profile/);
      site.remove("misarmored");
      await site.gone("misarmored");
    });
  });

  it("huge pages are the container's up to its limit, and no further", { skip: whyNoHugePages() }, async () => {
    const resources = { limits: { "hugepages-2Mi": "8Mi", memory: "64Mi", cpu: "500m" } };
    const volumes = [{ name: "huge", emptyDir: { medium: "HugePages" } }];
    const script = forever(
      "fallocate -l 4194304 /huge/a && echo some; fallocate -l 8388608 /huge/b || echo refused; echo end",
    );
    const main = shell("main", script, { resources, volumeMounts: [{ name: "huge", mountPath: "/huge" }] });
    site.write(manifest("huge", { containers: [main], volumes }, { uid: "huge1" }));
    const words = await said(site, "huge", /^end$/m);
    // What the program writes to stderr has no order beside the rest.
    const ownWords = words.split("\n").filter((line) => /^(some|refused|end)$/.test(line));
    assert.deepEqual(ownWords, ["some", "refused", "end"], words);
    // The pod's cgroup holds the limit: containerd leaves that of a container alone (disable_hugetlb_controller).
    const isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");
    const top = join(isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/hugetlb", site.layout.cgroupRoot);
    const limit = (path: string): number =>
      Number(readFileSync(join(top, path, isUnified ? "hugetlb.2MB.max" : "hugetlb.2MB.limit_in_bytes"), "utf8"));
    assert.equal(limit("kubepods/podhuge1"), 8 * MIB);
    assert.ok(limit("kubepods") >= 8 * MIB);
    site.remove("huge");
    await site.gone("huge");
  });

  it("the kernel's choice of whom to kill follows the class of the pod", { skip: whyNoLowScores() }, async () => {
    const score = "cat /proc/1/oom_score_adj";
    const total = Number(/^MemTotal:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) * 1024;
    const full = { cpu: "500m", memory: "64Mi" };
    const guaranteed = { resources: { limits: full, requests: full } };
    const burstable = { resources: { requests: { memory: "256Mi" } } };
    assert.deepEqual(await inside("first", score, {}), ["1000"]);
    assert.deepEqual(await inside("last", score, guaranteed), ["-997"]);
    const between = 1000 - Math.floor((1000 * 256 * MIB) / total);
    assert.deepEqual(await inside("between", score, burstable), [String(Math.min(999, Math.max(3, between)))]);
  });
});
