/** The pages of monitoring of this agent beside those of the original kubelet, both on the same containers at once. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
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
import { goKubelet, makeCgroup, savedSysctls, skipWithoutGoKubelet } from "../support/go-kubelet.ts";
import { fullName, KUBELET_METRICS } from "../support/metric-names.ts";
import { differences, isNear, NEAR, NEAR_OF_MACHINE } from "../support/metrics-compare.ts";
import { parseMetrics, shapeOf, shapeProblems } from "../support/metrics-page.ts";

requireMachine();
skipWithoutGoKubelet();

/** The original makes a socket of device plugins there, whatever its root directory is. */
const FIXED_DIR = "/var/lib/kubelet";
const hadFixedDir = existsSync(FIXED_DIR);
const CADVISOR = "/metrics/cadvisor";
const PAGES = [
  CADVISOR,
  "/metrics/resource",
  "/metrics/probes",
  "/metrics",
  "/metrics/slis",
  "/stats/summary",
] as const;
const container = {
  image: TEST_IMAGES.busybox,
  imagePullPolicy: "Never",
  resources: { limits: { cpu: "100m", memory: "64Mi" }, requests: { cpu: "100m", memory: "32Mi" } },
};
/** Holds memory, writes to its volumes, and uses its CPU up. */
const WORK = [
  "dd if=/dev/zero of=/data/a bs=1M count=3 2>/dev/null; cp /facts/name /mem/copy",
  "dd if=/dev/zero bs=16M count=1 2>/dev/null | sleep 3600 &",
  "trap 'exit 0' TERM; while :; do :; done",
].join("\n");
const mounts = ["data", "mem", "facts"].map((name) => ({ name, mountPath: `/${name}` }));
const POD = testPod("web", {
  containers: [
    {
      ...container,
      name: "main",
      command: ["/bin/sh", "-c", WORK],
      readinessProbe: { tcpSocket: { port: 9 }, periodSeconds: 1 },
      volumeMounts: mounts,
    },
    {
      ...container,
      name: "side",
      command: ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"],
    },
  ],
  volumes: [
    { name: "data", emptyDir: {} },
    { name: "mem", emptyDir: { medium: "Memory", sizeLimit: "16Mi" } },
    { name: "facts", downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
  ],
});

type Who = "theirs" | "ours";
/** Where both pages are kept, to be looked at; none are without it. */
const kept = process.env["KUBELET_KEPT_PAGES"];

function keepPages(directory: string, of: Readonly<Record<Who, Pages | undefined>>): void {
  for (const [who, pages] of Object.entries(of)) {
    mkdirSync(join(directory, who), { recursive: true });
    for (const [path, page] of Object.entries(pages ?? {})) {
      writeFileSync(join(directory, who, path.slice(1).replaceAll("/", "-")), page);
    }
  }
}

type Pages = Readonly<Record<(typeof PAGES)[number], string>>;

/** One of the two kubelets. */
class Contestant {
  private constructor(
    readonly program: Program,
    private readonly port: number,
  ) {}

  static async start(who: Who, dir: string, containerd: TestContainerd): Promise<Contestant> {
    const readOnlyPort = await freePort();
    const config = {
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
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
      readOnlyPort,
      staticPodPath: join(dir, "manifests"),
      podLogsDir: join(dir, "logs"),
      volumeStatsAggPeriod: "2s",
      authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
      authorization: { mode: "AlwaysAllow" },
      evictionHard: { "memory.available": "1Mi" },
    };
    const file = join(dir, `${who}.json`);
    writeFileSync(file, JSON.stringify(config));
    const program = new Program([
      ...[who === "ours" ? KUBELET : (goKubelet() ?? ""), `--config=${file}`, `--root-dir=${join(dir, "root")}`],
      ...[`--cert-dir=${join(dir, `${who}-pki`)}`, "--hostname-override=here", "--housekeeping-interval=1s"],
      `--containerd=${containerd.endpoint.replace("unix://", "")}`,
    ]);
    return new Contestant(program, readOnlyPort);
  }

  async page(path: string): Promise<string> {
    assert.ok(!this.program.isOver, this.program.stderr.slice(-3000));
    return (await http(`http://127.0.0.1:${this.port}${path}`).catch(() => undefined))?.body ?? "";
  }

  async pages(): Promise<Pages> {
    const read = await Promise.all(PAGES.map(async (path) => [path, await this.page(path)] as const));
    // fromEntries forgets the keys: they are those of the list.
    return Object.fromEntries(read) as Pages;
  }

  /** Waits until it has sampled the containers, their volumes, and the images of the runtime. */
  async sampled(): Promise<void> {
    const seen = (): string => this.program.stderr.slice(-2000);
    const isWhole = async (): Promise<boolean> => {
      const [metrics, summary] = [await this.page(CADVISOR), await this.page("/stats/summary")];
      const cpu = /^container_cpu_usage_seconds_total\{container="side".*pod="web-here"/m.test(metrics);
      const network = /^container_network_receive_bytes_total\{.*pod="web-here"/m.test(metrics);
      const numbers = numbersOf(summary.startsWith("{") ? summary : "{}");
      const bytes = numbers.get("/node/runtime/imageFs/usedBytes") ?? 0;
      return cpu && network && bytes > 0 && numbers.has("/pods[web-here]/volume[facts]/usedBytes");
    };
    await until("the containers are sampled", isWhole, { limitMs: 90_000, seen });
  }
}

/** The numbers of a JSON text by their paths; items of lists go by their names. */
function numbersOf(text: string): Map<string, number> {
  const found = new Map<string, number>();
  const walk = (value: unknown, path: string): void => {
    if (typeof value === "number") found.set(path, value);
    else if (Array.isArray(value)) {
      for (const item of value as Record<string, unknown>[]) {
        const { name } = (item["podRef"] ?? item) as { name?: string };
        walk(item, `${path}[${name}]`);
      }
    } else if (typeof value === "object" && value !== null) {
      for (const [key, of] of Object.entries(value)) walk(of, `${path}/${key}`);
    }
  };
  walk(JSON.parse(text), "");
  return found;
}

/** Numbers of the summary that differ, as docs/monitoring.md says, or are a mean over another time. */
const OTHER_FIELDS =
  /ageFaults$|\/psi\/|\/logs\/|usageNanoCores$|ephemeral-storage\/(inodesUsed|usedBytes)$|rlimit|\/network\//;

describe("monitoring of the original kubelet and of this agent", () => {
  const dir = mkdtempSync(join(tmpdir(), "mo-"));
  const restoreSysctls = savedSysctls();
  const both: Partial<Record<Who, Contestant>> = {};
  let containerd: TestContainerd;
  let [first, theirs, last]: Pages[] = [];

  const of = (pages: Pages | undefined, path: (typeof PAGES)[number]): string => pages?.[path] ?? "";

  before(async () => {
    containerd = await TestContainerd.start();
    makeCgroup(containerd.cgroupParent);
    mkdirSync(join(dir, "manifests"));
    writeFileSync(join(dir, "manifests/web.json"), JSON.stringify(POD));
    // The second one adopts what the first has started.
    for (const who of ["theirs", "ours"] as const) {
      const one = await Contestant.start(who, dir, containerd);
      both[who] = one;
      await one.sampled();
    }
    // Samples are up to a second old: theirs is taken between two of ours.
    const read = (who: Who): Promise<Pages | undefined> => both[who]?.pages() ?? Promise.resolve(undefined);
    first = await read("ours");
    await pause(4000);
    theirs = await read("theirs");
    await pause(4000);
    last = await read("ours");
    if (kept !== undefined) keepPages(kept, { theirs, ours: last });
  });
  after(async () => {
    for (const one of Object.values(both)) await one?.program.end("SIGTERM");
    restoreSysctls();
    await containerd?.stop();
    await removeLogLinks(dir);
    removeAgentFiles(dir);
    if (hadFixedDir || !existsSync(FIXED_DIR)) return;
    rmSync(join(FIXED_DIR, "device-plugins"), { recursive: true, force: true });
    rmdirSync(FIXED_DIR);
  });

  for (const path of [CADVISOR, "/metrics/resource"] as const) {
    it(`${path}: the same series with the same numbers; only the pressure of the node is more here`, () => {
      assert.ok(parseMetrics(of(theirs, path)).size > 5);
      const pages = { before: of(first, path), theirs: of(theirs, path), after: of(last, path) };
      assert.deepEqual(differences(pages), []);
    });
  }

  for (const path of ["/metrics/probes", "/metrics/slis", CADVISOR, "/metrics/resource"] as const) {
    it(`${path}: every metric of theirs, with its labels, type, level and buckets`, () => {
      const [original, ours] = [shapeOf(of(theirs, path)), shapeOf(of(last, path))];
      assert.deepEqual(
        [...original.types.keys()].filter((name) => !ours.types.has(name)),
        [],
        "missing",
      );
      assert.deepEqual(shapeProblems(original, ours), []);
    });
  }

  it("/metrics: every metric of theirs that is not left out for a reason, with its labels, type, level and buckets", () => {
    const leftOut = new Set(
      [...KUBELET_METRICS].flatMap(([name, rule]) => (rule === "always" ? [] : [fullName(name), name])),
    );
    const isForeign = (name: string): boolean =>
      /^(go|apiserver|aggregator|workqueue|rest_client|volume_operation|cardinality_enforcement)_/.test(name) ||
      /^(disabled|hidden|registered)_metrics_total$/.test(name) ||
      leftOut.has(name);
    const [original, ours] = [shapeOf(of(theirs, "/metrics")), shapeOf(of(last, "/metrics"))];
    const missing = [...original.types.keys()].filter((name) => !isForeign(name) && !ours.types.has(name));
    assert.deepEqual(missing, []);
    assert.deepEqual(shapeProblems(original, ours), []);
  });

  it("/stats/summary: the same fields with the same numbers", () => {
    const path = "/stats/summary";
    const [before, original, now] = [
      numbersOf(of(first, path)),
      numbersOf(of(theirs, path)),
      numbersOf(of(last, path)),
    ];
    assert.ok(original.size > 100);
    assert.deepEqual(
      [...original.keys()].filter((key) => !now.has(key)),
      [],
      "missing",
    );
    assert.deepEqual(
      [...now.keys()].filter((key) => !original.has(key)),
      [],
      "extra",
    );
    const problems = [...original].flatMap(([key, value]) => {
      const ours = [before.get(key) ?? 0, now.get(key) ?? 0];
      const share = key.startsWith("/node/") && !key.includes("systemContainers") ? NEAR_OF_MACHINE : NEAR;
      return OTHER_FIELDS.test(key) || isNear(value, ours, share)
        ? []
        : [`${key}: theirs ${value}, ours ${ours.join(" to ")}`];
    });
    assert.deepEqual(problems, []);
  });
});
