/**
 * Tests that may be left out even in strict mode (KUBELET_STRICT=1), each with the reason. Any other skipped test fails
 * the run there: what nobody runs is not tested.
 */
interface AllowedSkip {
  /** The file of the suite, or of the unit test. */
  readonly file: string;
  /** The name of the test, or of the group of tests, that is left out. */
  readonly test: string;
  readonly why: string;
  /** Run in the emulated machine (npm run test:vm), where it may not be left out. */
  readonly runsInVm?: true;
}

export interface Skip {
  readonly file: string;
  readonly test: string;
  readonly reason: string;
}

const KERNEL = "test/integration/lifecycle-kernel.ts";
const SYSTEMD = "test/integration/lifecycle-systemd.ts";

const ALLOWED: readonly AllowedSkip[] = [
  { file: KERNEL, test: "AppArmor", why: "needs a kernel with AppArmor", runsInVm: true },
  {
    file: KERNEL,
    test: "huge pages are the container's up to its limit, and no further",
    why: "needs huge pages that are reserved",
    runsInVm: true,
  },
  {
    file: KERNEL,
    test: "the kernel's choice of whom to kill follows the class of the pod",
    why: "needs the right to lower a score of the OOM killer",
    runsInVm: true,
  },
  {
    file: "test/integration/lifecycle-cgroups.ts",
    test: "memory is throttled and protected with MemoryQoS",
    why: "needs cgroup v2",
    runsInVm: true,
  },
  {
    file: "test/features/pressure-restarts.ts",
    test: "a kill ends all processes of the container",
    why: "needs cgroup v2",
    runsInVm: true,
  },
  {
    file: "test/features/pressure-logind.ts",
    test: "systemd's login manager",
    why: "needs a machine that may be shut down",
    runsInVm: true,
  },
  {
    file: "test/features/pressure-unified-memory.ts",
    test: "a node with unified cgroups that is short of memory",
    why: "needs a machine whose swap may be turned on, with cgroup v2 and systemd",
    runsInVm: true,
  },
  {
    file: "test/features/pressure-unified-disk.ts",
    test: "a node with unified cgroups that is short of process ids, disk and inodes",
    why: "needs a machine whose swap may be turned on, with cgroup v2 and systemd",
    runsInVm: true,
  },
  {
    file: "test/features/pressure-stalls.ts",
    test: "pressure stalls",
    why: "needs cgroup v2 and a kernel with pressure stalls",
    runsInVm: true,
  },
  {
    file: "test/features/numa.ts",
    test: "two NUMA nodes",
    why: "needs two NUMA nodes with two CPUs each, and cgroup v2",
    runsInVm: true,
  },
  {
    file: SYSTEMD,
    test: "systemd's slices with the system's containerd, which the agent is told of",
    why: "needs systemd as the first process",
    runsInVm: true,
  },
  {
    file: SYSTEMD,
    test: "systemd's slices with containerd 2, which says so itself",
    why: "needs systemd as the first process",
    runsInVm: true,
  },
  {
    file: "test/integration/volumes-quota.ts",
    test: "an emptyDir on a filesystem with quotas of projects",
    why: "needs a filesystem with project quotas",
    runsInVm: true,
  },
  {
    file: "src/volumes/quota.root.test.ts",
    test: "quotas of ext4 in a mount namespace of their own",
    why: "needs a kernel with project quotas",
    runsInVm: true,
  },
  {
    file: "src/volumes/quota.root.test.ts",
    test: "quotas of xfs in a mount namespace of their own",
    why: "needs mkfs.xfs and a kernel with XFS; ext4 goes through the same calls",
  },
  {
    file: "test/integration/server-pages.ts",
    test: "/logs/?query= searches the journal by unit, pattern and number of lines",
    why: "needs a machine whose journal has units",
    runsInVm: true,
  },
  {
    file: "test/features/storage-nfs.ts",
    test: "volumes of an NFS server",
    why: "needs a kernel with an NFS client and an NFS server",
    runsInVm: true,
  },
  {
    file: "test/features/storage-disks.ts",
    test: "disks of a network",
    why: "needs a kernel with iSCSI, and tgt and open-iscsi",
    runsInVm: true,
  },
  {
    file: "test/integration/pod-network.ts",
    test: "a host port of SCTP is opened",
    why: "needs a kernel with SCTP",
  },
  {
    file: "test/integration/lifecycle-containerd2.ts",
    test: "a running container is written to an archive and goes on",
    why: "needs criu and a kernel that it works on",
    runsInVm: true,
  },
];

/** Those of the skipped tests that are not on the list. */
export function skipsNotAllowed<T extends Skip>(skipped: readonly T[]): T[] {
  const isInVm = process.env["KUBELET_TEST_VM"] === "1";
  const allowed = ALLOWED.filter(({ runsInVm }) => !(isInVm && runsInVm === true));
  return skipped.filter(({ file, test }) => !allowed.some((one) => one.file === file && one.test === test));
}

/** The files on the list. */
export function allowedFiles(): string[] {
  return ALLOWED.map(({ file }) => file);
}
