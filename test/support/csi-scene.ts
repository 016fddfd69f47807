import assert from "node:assert/strict";
import type { CsiCapabilities } from "../../src/adapters/plugins/csi-client.ts";
import { LiveValue } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import { Metrics } from "../../src/lib/metrics.ts";
import type {
  CSIDriverSpec,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeSpec,
  Pod,
  Volume,
  VolumeAttachment,
} from "../../src/model/generated/types.ts";
import { AttachedVolumes } from "../../src/volumes/csi/attachment.ts";
import { csiBlockKind } from "../../src/volumes/csi/block-kind.ts";
import { BlockPaths } from "../../src/volumes/csi/block-paths.ts";
import { CsiDrivers, type CsiNodeService } from "../../src/volumes/csi/driver.ts";
import { csiKind } from "../../src/volumes/csi/kind.ts";
import { attachmentName } from "../../src/volumes/csi/volume.ts";
import { VolumeCalls } from "../../src/volumes/csi/volume-calls.ts";
import { DriverSpaces } from "../../src/volumes/driver-spaces.ts";
import type { ClaimPatch } from "../../src/volumes/expansion/claim-status.ts";
import { VOLUME_KINDS } from "../../src/volumes/kinds/index.ts";
import { VolumePaths } from "../../src/volumes/paths.ts";
import { VolumeLabels } from "../../src/volumes/selinux/volume-label.ts";
import type { NodeVolumes } from "../../src/volumes/volumes-in-use.ts";
import { pod } from "./pods.ts";
import { VolumeMachine } from "./volume-machine.ts";
import { VolumeScene } from "./volumes.ts";

export const CSI_DRIVER = "disk.example.com";
const SELINUX = { process: "system_u:system_r:container_t:s0", file: "system_u:object_r:container_file_t:s0" };
const PLUGIN = { name: CSI_DRIVER, endpoint: "/e", socket: "/s", versions: ["1.0.0"] };

type Method = "stage" | "unstage" | "publish" | "unpublish" | "expand" | "stats";

export interface FakeCall {
  readonly method: Method;
  readonly request: Readonly<Record<string, unknown>>;
}

/** A CSI driver in memory that mounts on the machine of a scene, with scripted faults. */
export class FakeCsi {
  readonly calls: FakeCall[] = [];
  /** What the next calls of a method reject with; `afterWork`: although the work was done. */
  readonly faults: { readonly method: Method; readonly error: Error; readonly afterWork?: boolean }[] = [];
  /** True for a driver that unmounts and leaves its files. */
  isUntidy = false;
  /** Called at the beginning of each call; may throw, or be waited for. */
  onCall: (method: Method) => void | Promise<void> = () => undefined;
  capabilities: CsiCapabilities = {
    stages: true,
    mountsWithGroup: false,
    countsWriters: false,
    expands: false,
    hasStats: false,
    hasCondition: false,
  };
  /** The filesystem of what it mounts. */
  filesystem = "csi";
  /** What `NodeGetVolumeStats` answers. */
  stats: Awaited<ReturnType<CsiNodeService["stats"]>> = { bytes: undefined, inodes: undefined, condition: undefined };
  /** Calls in flight by volume, and the most at once. */
  private readonly inFlight = new Map<string, number>();
  mostInFlight = 0;

  constructor(private readonly machine: VolumeMachine) {}

  get methods(): readonly string[] {
    return this.calls.map(({ method }) => method);
  }

  asked(method: Method): readonly FakeCall["request"][] {
    return this.calls.filter((call) => call.method === method).map(({ request }) => request);
  }

  service(): CsiNodeService {
    return {
      info: () => Promise.resolve({ nodeId: "n", maxVolumes: 0, topology: {} }),
      capabilities: () => Promise.resolve(this.capabilities),
      stage: (request) => this.answer("stage", request, () => this.mount(request.stagingPath)),
      unstage: (request) => this.answer("unstage", request, () => this.unmount(request.stagingPath)),
      publish: (request) => this.answer("publish", request, () => this.mount(request.targetPath, request)),
      unpublish: (request) => this.answer("unpublish", request, () => this.unmount(request.targetPath)),
      expand: (request) => this.answer("expand", request, () => Promise.resolve(request.bytes)),
      stats: (request) => this.answer("stats", request, () => Promise.resolve(this.stats)),
      close: () => undefined,
    };
  }

  private async answer<T>(method: Method, request: { volumeId: string }, work: () => Promise<T>): Promise<T> {
    this.calls.push({ method, request: { ...request } });
    const running = (this.inFlight.get(request.volumeId) ?? 0) + 1;
    this.inFlight.set(request.volumeId, running);
    this.mostInFlight = Math.max(this.mostInFlight, running);
    try {
      await this.onCall(method);
      const at = this.faults.findIndex((fault) => fault.method === method);
      const [fault] = at === -1 ? [] : this.faults.splice(at, 1);
      if (fault !== undefined && fault.afterWork !== true) throw fault.error;
      const result = await work();
      if (fault !== undefined) throw fault.error;
      return result;
    } finally {
      this.inFlight.set(request.volumeId, (this.inFlight.get(request.volumeId) ?? 1) - 1);
    }
  }

  /** A driver makes what it mounts at, and does nothing if it is mounted. */
  private async mount(
    path: string,
    published?: { readonly stagingPath: string; readonly use: { readonly filesystem: unknown } },
  ): Promise<void> {
    if (this.machine.mounts.has(path)) return;
    if (published !== undefined && published.use.filesystem === undefined) {
      await this.machine.makeFile(path, 0o600);
      this.machine.kinds.set(path, "blockDevice");
    } else await this.machine.makeDir(path, 0o750);
    this.machine.mounts.set(path, { type: this.filesystem, ...(published && { source: published.stagingPath }) });
  }

  private async unmount(path: string): Promise<void> {
    this.machine.mounts.delete(path);
    if (this.isUntidy) {
      if (this.machine.kinds.get(path) === "directory") await this.machine.makeFile(`${path}/own.json`, 0o600);
      else this.machine.kinds.set(path, "file");
    } else if (this.machine.kinds.get(path) !== "directory") await this.machine.removeFile(path);
    else await this.machine.removeDir(path);
  }
}

export interface CsiSceneOptions {
  /** Of the CSIDriver object; false: there is none. It needs no attachment unless this asks for one. */
  readonly driver?: CSIDriverSpec | false;
  /** Of the PersistentVolume `pv-1`. */
  readonly volume?: PersistentVolumeSpec;
  /** Of the claim `data`. */
  readonly claim?: Partial<Pick<PersistentVolumeClaim, "spec" | "status">>;
  readonly machine?: VolumeMachine;
  readonly hasSelinux?: boolean;
  /** The gate SELinuxMount. */
  readonly labelsAllModes?: boolean;
  /** The gate of volumes' health is on. */
  readonly reportsHealth?: boolean;
}

/** Volumes of a CSI driver on a machine in memory: a PersistentVolume `pv-1` (`disk-1`) behind the claim `data`. */
export class CsiScene extends VolumeScene {
  readonly csi: FakeCsi;
  readonly reported = new LiveValue<NodeVolumes>({ inUse: [], attached: [] });
  readonly agentSignal = new AbortController().signal;
  private isFirst = true;
  private readonly isBlock: boolean;
  private readonly reportsHealth: boolean;
  private readonly selinux: VolumeLabels;
  readonly metrics = new Metrics();
  readonly spaces: DriverSpaces;
  drivers: CsiDrivers;
  attached: AttachedVolumes;

  constructor(options: CsiSceneOptions = {}) {
    super([], { kinds: [] }, options.machine ?? new VolumeMachine());
    this.csi = new FakeCsi(this.machine);
    // A node may not watch claims and volumes.
    this.objects.tell = () => undefined;
    this.isBlock = options.volume?.volumeMode === "Block";
    this.reportsHealth = options.reportsHealth === true;
    const contexts = options.hasSelinux === true ? SELINUX : undefined;
    const { metrics } = this;
    this.selinux = new VolumeLabels({ contexts, metrics, isForAllModes: options.labelsAllModes === true });
    this.spaces = new DriverSpaces({ clock: this.clock, log: silent, metrics: this.metrics }, this.agentSignal);
    [this.drivers, this.attached] = this.newCsi();
    this.volumes = this.newAgent();
    // The next agent would declare the metrics again.
    this.isFirst = false;
    const { driver = {} } = options;
    if (driver !== false) {
      const spec = { attachRequired: false, ...driver };
      this.objects.put(
        { kind: "CSIDriver", namespace: "", name: CSI_DRIVER },
        { metadata: { name: CSI_DRIVER }, spec },
      );
    }
    const persistent: PersistentVolume = {
      metadata: { name: "pv-1" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        csi: { driver: CSI_DRIVER, volumeHandle: "disk-1", fsType: "ext4" },
        claimRef: { uid: "claim-1", namespace: "default", name: "data" },
        ...options.volume,
      },
    };
    this.volume = persistent;
    this.claim = {
      metadata: { name: "data", namespace: "default", uid: "claim-1", resourceVersion: "1" },
      spec: { volumeName: "pv-1", ...options.claim?.spec },
      status: { phase: "Bound", ...options.claim?.status },
    };
    this.putClaim();
  }

  /** Pods that were rejected: reason and message. */
  readonly rejections: (readonly [string, string])[] = [];
  /** Drivers whose volumes found no room. */
  readonly exhausted: string[] = [];
  /** The claim on the API server; the volume it is bound to. */
  claim: PersistentVolumeClaim;
  volume: PersistentVolume;
  /** The patches of the claim's status. */
  readonly patches: unknown[] = [];
  patchFault: Error | undefined;

  /** What others do to claim and volume. */
  change(status: PersistentVolumeClaim["status"], volume: PersistentVolumeSpec = {}): void {
    this.volume = { ...this.volume, spec: { ...this.volume.spec, ...volume } };
    this.claim = { ...this.claim, status: { ...this.claim.status, ...status } };
    this.putClaim();
  }

  private putClaim(): void {
    const resourceVersion = String(Number(this.claim.metadata.resourceVersion) + 1);
    this.claim = { ...this.claim, metadata: { ...this.claim.metadata, resourceVersion } };
    this.objects.put({ kind: "PersistentVolume", namespace: "", name: "pv-1" }, this.volume);
    this.objects.put({ kind: "PersistentVolumeClaim", namespace: "default", name: "data" }, this.claim);
  }

  /** The status of a claim as an API server takes it: fields are merged, `null` removes. */
  private async patchStatus(_of: unknown, patch: ClaimPatch): Promise<PersistentVolumeClaim> {
    this.patches.push(patch.status);
    if (this.patchFault !== undefined) throw this.patchFault;
    const version = patch.metadata?.resourceVersion;
    assert.ok(version === undefined || version === this.claim.metadata.resourceVersion, "the claim has changed");
    this.claim = { ...this.claim, status: merged(this.claim.status ?? {}, patch.status) };
    this.putClaim();
    return this.claim;
  }

  /** Has the driver register; it is not there before. */
  async register(): Promise<this> {
    await this.drivers.register(PLUGIN, { signal: this.agentSignal });
    return this;
  }

  deregister(): void {
    this.drivers.deregister(PLUGIN);
  }

  /** Another agent on the same machine, at which the driver has registered. */
  async restart(): Promise<void> {
    [this.drivers, this.attached] = this.newCsi();
    this.volumes = this.newAgent();
    await this.register();
  }

  /** A pod that uses the claim, as a directory or, with a block volume, as a device. */
  user(name: string, volume: Partial<Volume> = { persistentVolumeClaim: { claimName: "data" } }): Pod {
    const use = this.isBlock
      ? { volumeDevices: [{ name: "v", devicePath: "/dev/v" }] }
      : { volumeMounts: [{ name: "v", mountPath: "/v" }] };
    return pod(name)
      .container("app", use)
      .with({ volumes: [{ name: "v", ...volume }] })
      .build();
  }

  teardown(name: string): Promise<void> {
    return this.volumes.teardown(`uid-of-${name}`, this.never);
  }

  /** What the attach controller and the driver's attacher do. */
  attach(status: VolumeAttachment["status"] = { attached: true }): void {
    const name = attachmentName("disk-1", CSI_DRIVER, "node-1");
    const spec = { attacher: CSI_DRIVER, nodeName: "node-1", source: { persistentVolumeName: "pv-1" } };
    const object = { metadata: { name }, spec, ...(status && { status }) };
    this.objects.put({ kind: "VolumeAttachment", namespace: "", name }, object);
  }

  /** What is left on the machine of volumes. */
  leftovers(): readonly string[] {
    const left = [...this.machine.modes.keys()].filter((path) =>
      /pv-1|kubernetes\.io~csi\/|plugins\/.*\/csi\/./.test(path),
    );
    return [...this.machine.mounts.keys(), ...left];
  }

  override newAgent(): ReturnType<VolumeScene["newAgent"]> {
    // Called by the constructor of the scene before there is a driver.
    if (this.drivers === undefined) return super.newAgent();
    const of = {
      drivers: this.drivers,
      attached: this.attached,
      nodeName: "node-1",
      reportsHealth: this.reportsHealth,
      selinux: this.selinux,
    };
    const paths = new BlockPaths(new VolumePaths("/root"));
    const claims = { patchStatus: this.patchStatus.bind(this) };
    const { spaces, metrics } = this;
    return this.agentWith([...VOLUME_KINDS, csiKind(of), csiBlockKind(of, paths)], {
      claims,
      spaces,
      ...(this.isFirst && { metrics }),
      reject: (_pod, { reason, message }) => void this.rejections.push([reason, message]),
    });
  }

  private newCsi(): [CsiDrivers, AttachedVolumes] {
    const exhausted = (driver: string): void => void this.exhausted.push(driver);
    const attached = new AttachedVolumes({ clock: this.clock, reported: this.reported, exhausted });
    const calls = new VolumeCalls(this.agentSignal);
    return [new CsiDrivers({ log: silent, calls, connect: () => this.csi.service() }), attached];
  }
}

type Condition = { readonly type: string; readonly $patch?: string };

/** A strategic merge: `null` removes a field, conditions are merged by their type. */
function merged(status: object, patch: Readonly<Record<string, unknown>>): object {
  const { conditions = [], ...fields } = { ...status, ...patch } as { conditions?: readonly Condition[] };
  const known = (status as { conditions?: readonly Condition[] }).conditions ?? [];
  const changed = patch["conditions"] === undefined ? [] : conditions;
  const kept = known.filter(({ type }) => !changed.some((one) => one.type === type));
  const all = [...kept, ...changed.filter(({ $patch }) => $patch !== "delete")];
  const left = Object.entries(fields).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(left), ...(all.length > 0 && { conditions: all }) };
}
