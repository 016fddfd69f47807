/** Port 4194 of this agent beside cAdvisor itself, both on the same containers at once. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { removeAgentFiles } from "../../bench/compare-agent.ts";
import { http } from "../integration/support/http.ts";
import { KUBELET, Program } from "../integration/support/program.ts";
import { requireMachine } from "../integration/support/site.ts";
import { pause, until } from "../integration/support/until.ts";
import { removeLogLinks, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES, TestContainerd } from "../support/containerd.ts";
import { freePort } from "../support/free-port.ts";
import { makeCgroup, savedSysctls } from "../support/go-kubelet.ts";
import { fieldsOf, numbersOf } from "../support/json-shape.ts";
import { differences, isNear, NEAR, NEAR_OF_MACHINE } from "../support/metrics-compare.ts";
import { type ParsedSeries, parseMetrics, shapeOf, shapeProblems } from "../support/metrics-page.ts";

requireMachine();

const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "kubelet-ts");
const CADVISOR = join(process.env["CADVISOR_BIN_DIR"] || join(cache, "cadvisor-0.56.2"), "cadvisor");
if (!existsSync(CADVISOR)) {
  process.stdout.write(`no ${CADVISOR} (node scripts/build-cadvisor.mjs)\n`);
  process.exit(77);
}

/** Uses its CPU up, holds memory, and writes to its log and to its disk. */
const WORK = [
  "dd if=/dev/zero of=/tmp/a bs=1M count=3 2>/dev/null; sync",
  "dd if=/dev/zero bs=16M count=1 2>/dev/null | sleep 3600 &",
  "trap 'exit 0' TERM; while :; do :; done",
].join("\n");
const container = {
  image: TEST_IMAGES.busybox,
  imagePullPolicy: "Never",
  resources: { limits: { cpu: "100m", memory: "64Mi" }, requests: { cpu: "100m", memory: "32Mi" } },
};
const POD = testPod("web", {
  containers: [
    { ...container, name: "main", command: ["/bin/sh", "-c", WORK] },
    {
      name: "side",
      image: TEST_IMAGES.busybox,
      imagePullPolicy: "Never",
      command: ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"],
    },
  ],
});

/** By version, without the path of a cgroup; `:id` and `:cgroup` stand for a container's. */
const PATHS = [
  ...["v1.0/machine", "v1.0/containers/", "v1.3/containers:cgroup", "v1.3/subcontainers:parent"],
  ...["v2.0/version", "v2.0/attributes", "v2.0/machine", "v2.0/storage", "v2.1/machinestats?count=1"],
  ...["v2.0/summary:cgroup", "v2.0/spec:cgroup", "v2.0/stats:cgroup?count=1", "v2.0/stats/?count=1"],
  ...["v2.1/stats:cgroup?count=1", "v2.1/spec:parent?recursive=true"],
] as const;

/** Fields that only one of the two has, as docs/monitoring.md says. */
const MISSING = [
  // Not collected by a kubelet: a hundred zeros.
  /\/tcp_advanced(\/|$)/,
  // Labels and annotations of the runtime beside the names of pods.
  /\/labels\/(?!io\.kubernetes\.(container\.name|pod\.(name|namespace|uid))$)/,
  // Filesystems of containers.
  /^\/\*\/stats\[\]\/filesystem|^(\[\])?\/stats\[\]\/filesystem|^\/\*\[\]\/filesystem/,
];
const EXTRA = [
  // Answers of 2.0 have no processes at cAdvisor, where the flag for them is never set.
  /^\/\*\[\]\/processes\//,
  // cAdvisor needs two samples of the answer for it.
  /\/cpu_inst(\/|$)/,
  // Filesystems that cAdvisor does not take for those of a disk here.
  /filesystem/,
];

type Who = "ours" | "theirs";

describe("cAdvisor and port 4194 of this agent", () => {
  const dir = mkdtempSync(join(tmpdir(), "mc-"));
  const restoreSysctls = savedSysctls();
  const addresses: Partial<Record<Who, string>> = {};
  const programs: Program[] = [];
  let containerd: TestContainerd;
  let pages: { before: string; theirs: string; after: string };
  /** The cgroup of the container `main`. */
  let cgroup = "";

  const read = async (who: Who, path: string): Promise<string> => {
    const { status, body } = await http(`http://${addresses[who]}${path}`);
    assert.equal(status, 200, `${who} ${path}: ${body.slice(0, 300)}`);
    return body;
  };
  const full = (path: string): string =>
    `/api/${path.replace(":cgroup", cgroup).replace(":parent", `${containerd.cgroupParent}/kubepods`)}`;
  const json = async (who: Who, path: string): Promise<unknown> => JSON.parse(await read(who, full(path)));
  /** Series of the cgroups that both watch. */
  const isElsewhere = ({ labels }: ParsedSeries): boolean =>
    labels["id"] !== undefined && labels["id"] !== "/" && !labels["id"].startsWith(`${containerd.cgroupParent}/`);

  before(async () => {
    containerd = await TestContainerd.start();
    makeCgroup(containerd.cgroupParent);
    mkdirSync(join(dir, "manifests"));
    writeFileSync(join(dir, "manifests/web.json"), JSON.stringify(POD));
    const cadvisorPort = await freePort();
    const config = {
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      address: "127.0.0.1",
      port: await freePort(),
      containerRuntimeEndpoint: containerd.endpoint,
      cgroupDriver: "cgroupfs",
      cgroupRoot: containerd.cgroupParent,
      failSwapOn: false,
      failCgroupV1: false,
      resolvConf: "",
      makeIPTablesUtilChains: false,
      enforceNodeAllocatable: [],
      healthzPort: await freePort(),
      staticPodPath: join(dir, "manifests"),
      podLogsDir: join(dir, "logs"),
    };
    writeFileSync(join(dir, "config.json"), JSON.stringify(config));
    const flags = [`--config=${join(dir, "config.json")}`, `--root-dir=${join(dir, "root")}`];
    const more = [`--cert-dir=${join(dir, "pki")}`, `--cadvisor-port=${cadvisorPort}`, "--housekeeping-interval=1s"];
    const agent = new Program([KUBELET, ...flags, ...more, "--hostname-override=here"]);
    programs.push(agent);
    addresses.ours = `127.0.0.1:${cadvisorPort}`;
    const seen = (): string => agent.stderr.slice(-2000);
    const hasSide = (page: string): boolean =>
      /^container_cpu_usage_seconds_total\{[^\n]*container="side"[^\n]*pod="web-here"/m.test(page);
    await until(
      "the agent samples the containers",
      async () => hasSide(await read("ours", "/metrics").catch(() => "")),
      {
        limitMs: 90_000,
        seen,
      },
    );
    const endpoint = containerd.endpoint.replace("unix://", "");
    const original = new Program([CADVISOR, `-containerd=${endpoint}`, `-cgroups=${containerd.cgroupParent}/kubepods`]);
    programs.push(original);
    addresses.theirs = await until("cAdvisor listens", () => /^(127\S+)$/m.exec(original.stdout)?.[1]);
    await until("cAdvisor samples them too", async () => hasSide(await read("theirs", "/metrics").catch(() => "")), {
      limitMs: 60_000,
      seen: () => original.stderr.slice(-2000),
    });
    const series = [...parseMetrics(await read("ours", "/metrics")).values()];
    cgroup = series.find(({ labels }) => labels["container"] === "main")?.labels["id"] ?? "";
    // Samples are up to a second old: theirs is taken between two of ours.
    const first = await read("ours", "/metrics");
    await pause(4000);
    const theirs = await read("theirs", "/metrics");
    await pause(4000);
    const last = await read("ours", "/metrics");
    pages = { before: withoutPods(first), theirs: withoutPods(theirs), after: withoutPods(last) };
  });
  after(async () => {
    for (const one of programs) await one.end("SIGTERM");
    restoreSysctls();
    await containerd?.stop();
    await removeLogLinks(dir);
    removeAgentFiles(dir);
  });

  it("/metrics: the same series with the same numbers", () => {
    const { theirs } = pages;
    assert.ok([...parseMetrics(theirs).values()].filter((one) => !isElsewhere(one)).length > 200);
    assert.deepEqual(differences(pages, isElsewhere), []);
  });

  it("/metrics: every name, with its labels and type", () => {
    const [original, ours] = [shapeOf(pages.theirs), shapeOf(pages.after)];
    assert.deepEqual(
      [...original.types.keys()].filter((name) => !ours.types.has(name)),
      [],
      "missing",
    );
    assert.deepEqual(shapeProblems(original, ours), []);
  });

  for (const path of PATHS) {
    it(`/api/${path}: the same fields of the same types`, async () => {
      const [original, ours] = [fieldsOf(await json("theirs", path)), fieldsOf(await json("ours", path))];
      const problems: string[] = [];
      for (const [field, type] of original) {
        const own = ours.get(field);
        if (own === undefined && !MISSING.some((one) => one.test(field))) problems.push(`missing: ${field} (${type})`);
        const isList = new Set([own, type]).size === 2 && [own, type].every((one) => one === "null" || one === "list");
        if (own !== undefined && own !== type && !isList) problems.push(`${field}: theirs ${type}, ours ${own}`);
      }
      for (const field of ours.keys()) {
        if (!original.has(field) && !EXTRA.some((one) => one.test(field))) problems.push(`extra: ${field}`);
      }
      assert.deepEqual(problems, []);
    });
  }

  /** Numbers that are a time, or counted differently, as docs/monitoring.md says. */
  const OTHER_NUMBERS =
    /^\/\/\S+\[0\]\/processes\/|hierarchical_data|cpu_inst|\/(reservation|swap_limit)$|\/diskio\/|fd_count|hard_limit/;

  for (const path of ["v1.3/containers:cgroup", "v2.0/stats:cgroup?count=1", "v2.1/stats:cgroup?count=1"]) {
    it(`/api/${path}: the same numbers`, async () => {
      const newest = (value: unknown) => numbersOf(withLast(value));
      const first = newest(await json("ours", path));
      await pause(2500);
      const theirs = newest(await json("theirs", path));
      await pause(2500);
      const last = newest(await json("ours", path));
      const problems = [...theirs].flatMap(([field, value]) => {
        const ours = [first.get(field), last.get(field)].filter((one) => one !== undefined);
        if (ours.length === 0 || OTHER_NUMBERS.test(field) || isNear(value, ours, NEAR)) return [];
        return [`${field}: theirs ${value}, ours ${ours.join(" to ")}`];
      });
      assert.ok(theirs.size > 30, `${theirs.size} numbers`);
      assert.deepEqual(problems, []);
    });
  }

  it("/api/v1.3/machine: the same machine", async () => {
    const [theirs, ours] = [
      numbersOf(await json("theirs", "v1.0/machine")),
      numbersOf(await json("ours", "v1.0/machine")),
    ];
    const problems = [...theirs].flatMap(([field, value]) => {
      const own = ours.get(field);
      if (own === undefined || field.startsWith("/filesystems")) return [];
      const share = field === "/cpu_frequency_khz" ? NEAR_OF_MACHINE : 0;
      return isNear(value, [own], share) ? [] : [`${field}: theirs ${value}, ours ${own}`];
    });
    assert.deepEqual(problems, []);
  });

  it("cAdvisor's own clients understand every answer", async () => {
    const check = new Program([CADVISOR, `-check=http://${addresses.ours}/`]);
    await until("the clients have asked", () => check.isOver, { limitMs: 60_000 });
    // Its output may be read after its exit.
    await check.ended;
    assert.equal(check.stderr, "");
    const understood = JSON.parse(check.stdout) as Record<string, unknown>;
    const machine = understood["v1 machine"] as { num_cores: number; topology: unknown[] };
    assert.equal(machine.num_cores, (understood["v2 machine"] as typeof machine).num_cores);
    assert.equal(machine.topology.length > 0, true);
    const below = understood["v1 subcontainers"] as { name: string; spec: { labels?: object } }[];
    const main = below.find(({ name }) => name === cgroup);
    const labels = (main?.spec.labels ?? {}) as Record<string, string>;
    assert.equal(labels["io.kubernetes.container.name"], "main");
    const stats = understood["v2 stats"] as Record<string, { stats: { memory: { working_set: number } }[] }>;
    assert.ok((stats[cgroup]?.stats[0]?.memory.working_set ?? 0) > 2 ** 20);
    assert.equal((understood["v2 machine stats"] as unknown[]).length, 1);
  });
});

/** A kubelet gives the cgroups of pods their names; cAdvisor alone does not know them. */
function withoutPods(page: string): string {
  return page.replaceAll(/(,image="",name="",)namespace="[^"]*",pod="[^"]*"/g, '$1namespace="",pod=""');
}

/** An answer with the last sample of each cgroup alone. */
function withLast(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(-1).map(withLast);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, of]) => [key, key === "stats" || key.startsWith("/") ? withLast(of) : of]),
  );
}
