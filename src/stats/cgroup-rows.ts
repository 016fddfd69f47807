import type { CgroupDetails, InterfaceUsage, MountedFilesystem } from "../model/usage.ts";
import { labelText } from "./exposition.ts";
import type { ContainerSample, NodeSample, PodSample, UsageSample } from "./samples.ts";

/** One cgroup of the store, as cAdvisor lists them: the root, those of the system, of pods, sandboxes and containers. */
export interface CgroupRow {
  readonly path: string;
  readonly kind: "root" | "raw" | "container";
  /** Of a container or sandbox. */
  readonly id?: string;
  readonly image?: string;
  /** Names of Kubernetes; absent where there is none. */
  readonly pod?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly container?: string;
  /** Wall-clock milliseconds. */
  readonly startedAt: number;
  readonly usage: UsageSample;
  readonly details: CgroupDetails;
  readonly network: readonly InterfaceUsage[];
  readonly filesystems: readonly MountedFilesystem[];
}

const NOTHING: CgroupDetails = { disks: [], oomKills: 0 };

/** The cgroups of the store, each once, those above before those below. The root is limited by the memory of the node. */
export function* cgroupRows(
  node: NodeSample,
  pods: Iterable<PodSample>,
  { memoryBytes }: { readonly memoryBytes: number },
): Generator<CgroupRow> {
  const none = { network: [], filesystems: [] };
  const { usage, bootedAt, network, filesystems } = node;
  const { memory, ...rest } = detailsOf(usage);
  const details = { ...rest, ...(memory && { memory: { ...memory, limit: memoryBytes } }) };
  yield { path: "/", kind: "root", startedAt: bootedAt, usage, details, network, filesystems };
  const seen = new Set(["/"]);
  for (const { cgroup, startedAt, usage: used } of [...node.system, ...node.classes]) {
    if (seen.has(cgroup)) continue;
    seen.add(cgroup);
    yield { path: cgroup, kind: "raw", startedAt, usage: used, details: detailsOf(used), ...none };
  }
  for (const pod of pods) yield* podRows(pod);
}

function* podRows(sample: PodSample): Generator<CgroupRow> {
  const { uid, name: pod, namespace, cgroup, usage, startedAt, network = [], sandbox } = sample;
  const names = { uid, pod, namespace };
  const none = { network: [], filesystems: [] };
  if (cgroup !== undefined) {
    yield { ...names, path: cgroup, kind: "raw", startedAt, usage, details: detailsOf(usage), ...none };
  }
  // The network of a pod is that of its sandbox.
  if (sandbox !== undefined) yield { ...names, ...rowOf(sandbox), network, filesystems: [] };
  for (const one of sample.containers) yield { ...names, ...rowOf(one), ...none };
}

function rowOf({ id, name, cgroup, image, startedAt, usage }: ContainerSample) {
  const kind = "container" as const;
  return { path: cgroup, kind, id, image, container: name, startedAt, usage, details: detailsOf(usage) };
}

function detailsOf({ details }: UsageSample): CgroupDetails {
  return details ?? NOTHING;
}

/** The row with the kills of all instances of the container: the kernel forgets those of the ones before. Pure. */
export function withOomKills(row: CgroupRow, known: { of(uid: string, container: string): number }): CgroupRow {
  const { uid, container, details } = row;
  const kills = uid === undefined || container === undefined ? 0 : known.of(uid, container);
  return kills <= details.oomKills ? row : { ...row, details: { ...details, oomKills: kills } };
}

/** The labels of the kubelet for a cgroup, without braces; empty where a name is missing. */
export function rowLabels({ container = "", path, image = "", id = "", namespace = "", pod = "" }: CgroupRow): string {
  return labelText({ container, id: path, image, name: id, namespace, pod });
}
