import { type Json, timeOf } from "./cadvisor-json.ts";
import { attributesJson, machineJson } from "./cadvisor-machine.ts";
import { containerSpec, containerSpecV2, referenceOf } from "./cadvisor-spec.ts";
import { containerStats, containerStatsV20, containerStatsV21, machineStats } from "./cadvisor-stats.ts";
import type { CgroupRow } from "./cgroup-rows.ts";
import type { MachineDescription } from "./machine-description.ts";

/** What the API shows: the newest samples. */
export interface CadvisorStore {
  readonly machine: MachineDescription;
  readonly rows: readonly CgroupRow[];
}

/** A result of the API: JSON, or a text with the status that cAdvisor gives it. */
export type CadvisorResult = { readonly json: unknown } | { readonly status: number; readonly text: string };

interface Asked {
  readonly version: string;
  /** Cgroup or container, beginning with a slash. */
  readonly path: string;
  readonly query: URLSearchParams;
}

type Handler = (store: CadvisorStore, asked: Asked) => CadvisorResult;

const VERSIONS = ["v1.0", "v1.1", "v1.2", "v1.3", "v2.0", "v2.1"];

const V1: Readonly<Record<string, { readonly since: string; readonly handle: Handler }>> = {
  machine: { since: "v1.0", handle: (store) => ({ json: machineJson(store.machine, rootOf(store).filesystems) }) },
  containers: {
    since: "v1.0",
    handle: (store, { path }) => {
      const row = store.rows.find((one) => one.path === path);
      return row === undefined ? unknown(path) : { json: containerInfo(row, childrenOf(store.rows)) };
    },
  },
  subcontainers: {
    since: "v1.1",
    handle: (store, { path }) => {
      const found = store.rows.filter((row) => isWithin(row.path, path));
      const children = childrenOf(store.rows);
      return found.length === 0 ? unknown(path) : { json: found.map((row) => containerInfo(row, children)) };
    },
  },
  docker: {
    since: "v1.2",
    handle: (store, { path }) => {
      const found = store.rows.filter((row) => row.id !== undefined && (path === "/" || row.id === path.slice(1)));
      if (found.length === 0 && path !== "/") return unknown(path);
      const children = childrenOf(store.rows);
      return { json: Object.fromEntries(found.map((row) => [row.path, containerInfo(row, children)])) };
    },
  },
  // Events are not stored by default in the kubelet's cAdvisor either.
  events: { since: "v1.3", handle: () => ({ json: [] }) },
};

const V2: Readonly<Record<string, { readonly since: string; readonly handle: Handler }>> = {
  version: { since: "v2.0", handle: ({ machine }) => ({ json: machine.version }) },
  attributes: {
    since: "v2.0",
    handle: (store) => ({ json: attributesJson(store.machine, rootOf(store).filesystems) }),
  },
  machine: { since: "v2.0", handle: (store) => ({ json: machineJson(store.machine, rootOf(store).filesystems) }) },
  summary: { since: "v2.0", handle: (store, asked) => each(store, asked, derivedStats) },
  spec: { since: "v2.0", handle: (store, asked) => each(store, asked, containerSpecV2) },
  stats: {
    since: "v2.0",
    handle: (store, asked) => {
      if (asked.version === "v2.0") return each(store, asked, (row) => [containerStatsV20(row)]);
      const others = { ...store, rows: store.rows.filter(({ path }) => path !== "/" || asked.path !== "/") };
      return each(others, asked, (row) => ({ spec: containerSpecV2(row), stats: [containerStatsV21(row)] }));
    },
  },
  machinestats: { since: "v2.1", handle: (store) => ({ json: [machineStats(rootOf(store))] }) },
  storage: { since: "v2.0", handle: storage },
  events: { since: "v2.0", handle: () => ({ json: [] }) },
  appmetrics: { since: "v2.0", handle: () => ({ json: {} }) },
  ps: { since: "v2.0", handle: () => ({ json: [] }) },
};

/** Answers a path below `/api/` as cAdvisor does, versions 1.0 to 2.1. Pure. */
export function cadvisorApi(store: CadvisorStore, path: string, query: URLSearchParams): CadvisorResult {
  const [version = "", kind = "", ...rest] = path.replace(/^\/api\/?/, "").split("/");
  if (version === "") return { status: 400, text: `Supported API versions: ${VERSIONS.join(",")}` };
  if (!VERSIONS.includes(version)) return failed(`unsupported API version ${JSON.stringify(version)}`);
  const isOld = version.startsWith("v1");
  const table = isOld ? V1 : V2;
  const kinds = Object.keys(table).filter((name) => (table[name]?.since ?? "") <= version);
  if (kind === "") return { status: 400, text: `Supported request types: ${JSON.stringify(kinds.sort().join(","))}` };
  const problem = isOld ? undefined : queryProblem(query);
  if (problem !== undefined) return failed(problem);
  const entry = kinds.includes(kind) ? table[kind] : undefined;
  if (entry === undefined) return failed(`unknown request type ${JSON.stringify(kind)}`);
  return entry.handle(store, { version, path: `/${rest.filter((part) => part !== "").join("/")}`, query });
}

const TYPES = ["", "name", "docker", "podman"];

/** What is wrong with the options of a request of 2.x. */
function queryProblem(query: URLSearchParams): string | undefined {
  const [type, count] = [query.get("type") ?? "", query.get("count") ?? ""];
  if (!TYPES.includes(type)) return `unknown 'type' ${JSON.stringify(type)}`;
  if (count !== "" && !/^[+-]?\d+$/.test(count)) return `failed to parse 'count' option: ${count}`;
  if (Number(count) < -1) return `invalid 'count' option: only -1 and larger values allowed, not ${Number(count)}`;
  return undefined;
}

/** A map of cgroups by path, or of one container by its id (`type=docker`), with those below if `recursive=true`. */
function each(store: CadvisorStore, { path, query }: Asked, show: (row: CgroupRow) => unknown): CadvisorResult {
  const isRecursive = query.get("recursive") === "true";
  const byId = query.get("type") === "docker";
  const found = store.rows.filter((row) => {
    if (byId) return row.id !== undefined && (path === "/" || row.id === path.slice(1));
    return isRecursive ? isWithin(row.path, path) : row.path === path;
  });
  if (found.length === 0 && path !== "/") return unknown(path);
  return { json: Object.fromEntries(found.map((row) => [row.path, show(row)])) };
}

/** The names of the cgroups below each one, without those that are below another one of them. */
function childrenOf(rows: readonly CgroupRow[]): ReadonlyMap<string, readonly string[]> {
  const children = new Map<string, string[]>();
  const paths = new Set(rows.map(({ path }) => path));
  for (const path of paths) {
    if (path === "/") continue;
    let parent = parentOf(path);
    while (parent !== "/" && !paths.has(parent)) parent = parentOf(parent);
    const known = children.get(parent);
    if (known === undefined) children.set(parent, [path]);
    else known.push(path);
  }
  return children;
}

/** A cgroup in the shape of 1.x. */
function containerInfo(row: CgroupRow, children: ReadonlyMap<string, readonly string[]>): Json {
  const { id, path } = row;
  const below = children.get(path) ?? [];
  return {
    ...(id !== undefined && { id }),
    name: path,
    ...referenceOf(row),
    ...(below.length > 0 && { subcontainers: below.map((name) => ({ name })) }),
    spec: containerSpec(row),
    stats: [containerStats(row)],
  };
}

/** A container of a pod; the UID only if it is known. */
export interface ContainerName {
  readonly namespace: string;
  readonly pod: string;
  readonly uid?: string | undefined;
  readonly container: string;
}

/** A running container in the shape of 1.x; undefined if there is none. */
export function containerNamed(store: CadvisorStore, of: ContainerName): unknown {
  const row = store.rows.find(
    ({ namespace, pod, uid, container }) =>
      namespace === of.namespace && pod === of.pod && container === of.container && (of.uid ?? uid) === uid,
  );
  return row === undefined || of.container === "" ? undefined : containerInfo(row, new Map());
}

function derivedStats({ usage }: CgroupRow): unknown {
  const none = { present: false, mean: 0, std: 0, max: 0, fifty: 0, ninety: 0, ninetyfive: 0, count: 0 };
  const period = { percent_complete: 0, cpu: none, memory: none };
  return {
    timestamp: timeOf(usage.at.wall),
    latest_usage: { cpu: Math.round((usage.nanoCores ?? 0) / 1e6), memory: usage.memory?.workingSet ?? 0 },
    minute_usage: period,
    hour_usage: period,
    day_usage: period,
  };
}

/** The filesystems of the machine; that of the root directory has a label. Others have none here. */
function storage(store: CadvisorStore, { query }: Asked): CadvisorResult {
  const [label, uuid] = [query.get("label") ?? "", query.get("uuid") ?? ""];
  if (uuid !== "") return failed(`unable to find device for uuid ${JSON.stringify(uuid)}: no such device`);
  const all = rootOf(store).filesystems;
  const found = label === "" ? all : all.filter((one) => labelsOf(one).includes(label));
  return { json: found.map((one) => storageOf(one, store.machine.at)) };
}

function labelsOf({ mountpoint }: CgroupRow["filesystems"][number]): readonly string[] {
  return mountpoint === "/" ? ["root"] : [];
}

function storageOf(of: CgroupRow["filesystems"][number], at: number): unknown {
  const { device, mountpoint, space } = of;
  return {
    timestamp: timeOf(at),
    device,
    mountpoint,
    capacity: space.capacityBytes,
    available: space.availableBytes,
    usage: space.usedBytes,
    labels: labelsOf(of),
    inodes: space.inodes,
    inodes_free: space.inodesFree,
  };
}

function rootOf({ rows }: CadvisorStore): CgroupRow {
  const [root] = rows;
  if (root === undefined) throw new Error("the node was not sampled yet");
  return root;
}

function unknown(path: string): CadvisorResult {
  const name = JSON.stringify(path);
  return failed(`failed to get container ${name} with error: unknown container ${name}`);
}

function failed(text: string): CadvisorResult {
  return { status: 500, text };
}

function isWithin(path: string, top: string): boolean {
  return path === top || top === "/" || path.startsWith(`${top}/`);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
