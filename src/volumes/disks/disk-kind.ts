import type { Abortable } from "../../lib/abort.ts";
import { growFilesystem } from "../grow-filesystem.ts";
import {
  MAP_OPERATIONS,
  type ReadyVolume,
  type TearDownDeps,
  type VolumeHost,
  type VolumeKind,
  type VolumeOfPod,
} from "../kind.ts";
import { joinOptions, mountOptionsOf } from "../mount-options.ts";
import { asStep } from "../volume-error.ts";
import type { DiskAttachments } from "./disk-attachments.ts";
import type { DiskDriver } from "./disk-driver.ts";
import { BLOCK_DISK_LAYOUT, DISK_LAYOUT, podOf } from "./disk-layout.ts";

const WAIT_FOR_ATTACH = { step: "MountVolume.WaitForAttach failed", reason: "FailedMount" } as const;
const MOUNT_DEVICE = { step: "MountVolume.MountDevice failed", reason: "FailedMount" } as const;
const WAIT_FOR_BLOCK = { step: "MapVolume.WaitForAttach failed", reason: "FailedMapVolume" } as const;
const MAP = { step: "MapVolume.MapBlockVolume failed", reason: "FailedMapVolume" } as const;

export interface DiskKindDeps {
  /** Undefined for disks that no controller attaches. */
  readonly attachments?: DiskAttachments;
}

/** A disk with a filesystem: attached and mounted once a node, bound into each pod. */
export function diskKind(driver: DiskDriver, { attachments }: DiskKindDeps = {}): VolumeKind {
  return {
    plugin: driver.plugin,
    ...(driver.handles && { handles: (volume) => driver.handles?.(volume) === true }),
    handlesPersistent: (spec) => spec.volumeMode !== "Block" && driver.handlesPersistent(spec),

    staging: {
      layout: DISK_LAYOUT,
      metadata: (of, deps, options) => driver.metadata(of, deps, options),
      directory: (metadata) => driver.directory(metadata, "Filesystem"),
      isExclusive,
      list: (pluginsDir, host) => driver.list(pluginsDir, "Filesystem", host),

      async stage(of, deps, options) {
        const { directory, metadata } = of.stage;
        const { host } = deps;
        // Neither its target nor its controller is asked for what is there already.
        if ((await host.mountAt(directory)) !== undefined) return;
        const attach = async (): Promise<string> => {
          const devicePath = await awaitAttached(
            { name: driver.uniqueName?.(of), stage: directory },
            attachments,
            options,
          );
          return driver.attach({ of, directory, metadata, devicePath }, deps, options);
        };
        const device = await asStep(WAIT_FOR_ATTACH, attach, options.signal);
        await asStep(MOUNT_DEVICE, () => mountDevice({ of, driver, device }, host, options), options.signal);
      },

      async unstage({ directory, metadata }, deps, options) {
        const { host } = deps;
        await checkUnused(directory, host);
        const device = (await host.mountAt(directory))?.source;
        await host.unmountByCommand(directory, options);
        await detach({ driver, directory, metadata, device }, deps, { ...options, attachments });
      },

      forceDown: (directory, { host }, options) => host.unmountByCommand(directory, options),
    },

    async setUp(of, { host }, options) {
      const { directory } = of;
      const { readonly } = driver.use(of);
      if (of.persistent?.isBlock === true)
        throw new Error("its claim asks for a block device, which its PersistentVolume is not");
      const source = of.stage?.directory ?? driver.unstaged?.(of) ?? "";
      if ((await host.mountAt(directory)) === undefined) {
        await host.makeDir(directory, 0o750);
        const flags = joinOptions(mountOptionsOf(of.persistent), readonly ? ["ro"] : []);
        await host.bindByCommand({ source, target: directory, options: flags }, options);
      }
      const isShared = driver.hasGroupOfFirst === true && (await isOfOthers(directory, host));
      return {
        source: { kind: "path", path: directory, readonly, ...(driver.isRemote && { isRemote: true }) },
        isMounted: true,
        takesGroup: !isShared,
        events: isShared ? await otherGroup(of, host) : [],
        ...(driver.grows === true && { expand: growth(of, host) }),
      };
    },

    tearDown: ({ directory }, { host }, options) => host.unmountByCommand(directory, options),
  };
}

/** A disk that containers get as a device: attached once a node, locked and linked for each pod. */
export function blockDiskKind(driver: DiskDriver, { attachments }: DiskKindDeps = {}): VolumeKind {
  /** Devices by their stages; `stage` finds them before each `setUp`. */
  const devices = new Map<string, string>();
  return {
    plugin: driver.plugin,
    operations: MAP_OPERATIONS,
    handlesPersistent: (spec) => spec.volumeMode === "Block" && driver.handlesPersistent(spec),

    staging: {
      layout: BLOCK_DISK_LAYOUT,
      metadata: (of, deps, options) => driver.metadata(of, deps, options),
      directory: (metadata) => driver.directory(metadata, "Block"),
      isExclusive,
      list: (pluginsDir, host) => driver.list(pluginsDir, "Block", host),

      async stage(of, deps, options) {
        const { directory, metadata } = of.stage;
        const attach = async (): Promise<string> => {
          const devicePath = await awaitAttached(
            { name: driver.uniqueName?.(of), stage: directory },
            attachments,
            options,
          );
          return driver.attach({ of, directory, metadata, devicePath }, deps, options);
        };
        await deps.host.makeDir(directory, 0o750);
        devices.set(directory, await asStep(WAIT_FOR_BLOCK, attach, options.signal));
      },

      async unstage({ directory, metadata }, deps, options) {
        devices.delete(directory);
        const users = (await deps.host.mountsBelow(directory)).map((path) => path.slice(directory.length + 1));
        if (users.length > 0)
          throw new Error(`the device "${directory}" is still referenced from other Pods [${users.join(" ")}]`);
        await detach({ driver, directory, metadata, device: undefined }, deps, { ...options, attachments });
      },

      /** Of the original: the stage is not known, but has a device by the name of the pod. */
      async forceDown(link, { host }, options) {
        const device = (await host.readLink(link)) ?? "";
        for (const path of await devicesOf(link, driver, host)) {
          if ((await host.realPath(path)) === device || (await host.mountAt(path)) !== undefined)
            await unmap(path, host, options);
        }
      },
    },

    async setUp({ directory: link, stage, ...of }, { host }, options) {
      const { readonly } = driver.use({ ...of, directory: link });
      const device = devices.get(stage?.directory ?? "");
      if (stage === undefined || device === undefined) throw new Error("a block device is set up without its stage");
      await asStep(MAP, () => map({ device, link, stage: stage.directory }, host, options), options.signal);
      // A device has no filesystem to grow.
      const expand = driver.grows === true ? { expand: () => Promise.resolve() } : {};
      return { source: { kind: "device", path: link, readonly }, ...expand };
    },

    async tearDown({ directory: link, metadata }, { host }, options) {
      const plugins = pluginsOf(link);
      const stage = driver.directory(metadata, "Block");
      if (stage !== undefined) await unmap(`${plugins}/${stage}/${podOf(link)}`, host, options);
    },
  };
}

/** How the filesystem of a disk grows; a directory of the node is as large as its filesystem. */
function growth({ directory: mountPath, stage }: VolumeOfPod, host: VolumeHost): NonNullable<ReadyVolume["expand"]> {
  return async (_request, options) => {
    const device = stage && (await host.mountAt(stage.directory))?.source;
    if (device !== undefined) await growFilesystem({ device, mountPath }, host, options);
  };
}

/** One pod at a time may use it: that is all it can be used for. */
export function isExclusive({ persistent }: VolumeOfPod): boolean {
  const modes = persistent?.object.spec.accessModes ?? [];
  return modes.length === 1 && modes[0] === "ReadWriteOncePod";
}

async function awaitAttached(
  { name, stage }: { readonly name: string | undefined; readonly stage: string },
  attachments: DiskAttachments | undefined,
  options: Abortable,
): Promise<string> {
  return name === undefined ? "" : ((await attachments?.wait({ name, stage }, options)) ?? "");
}

async function mountDevice(
  { of, driver, device }: { of: VolumeOfPod & { stage: { directory: string } }; driver: DiskDriver; device: string },
  host: VolumeHost,
  options: Abortable,
): Promise<void> {
  const { fsType, readonly } = driver.use(of);
  const { directory: target } = of.stage;
  await host.makeDir(target, 0o750);
  const flags = joinOptions(mountOptionsOf(of.persistent), readonly ? ["ro"] : []);
  const request = { device, target, mayFormat: !readonly, options: flags, ...(fsType !== "" && { fsType }) };
  await host.mountDevice(request, options);
}

async function detach(
  request: Parameters<DiskDriver["detach"]>[0] & { readonly driver: DiskDriver },
  deps: TearDownDeps,
  { attachments, ...options }: Abortable & { readonly attachments: DiskAttachments | undefined },
): Promise<void> {
  const { driver, ...stage } = request;
  await driver.detach(stage, deps, options);
  const { directory } = stage;
  for (const name of driver.uniqueNames?.(directory) ?? []) attachments?.remove({ name, stage: directory });
}

/** What is still mounted anywhere else is in use, whoever mounted it. */
export async function checkUnused(directory: string, host: VolumeHost): Promise<void> {
  // A copy of the whole directory elsewhere, as in a container that has it, is no other use.
  const others = (await host.otherMounts(directory)).filter((path) => !path.includes(directory));
  if (others.length === 0) return;
  throw new Error(`the device mount path "${directory}" is still mounted by other references [${others.join(" ")}]`);
}

/** True if another pod has the same volume. */
async function isOfOthers(directory: string, host: VolumeHost): Promise<boolean> {
  const [pods, own] = [`${ancestor(directory, 4)}/`, `${ancestor(directory, 3)}/`];
  const others = await host.otherMounts(directory, { isWhole: true });
  return others.some((path) => path.startsWith(pods) && !path.startsWith(own));
}

/** The event of a volume that keeps the group of another pod, in the words of Kubernetes. */
async function otherGroup(
  { pod, persistent, directory }: VolumeOfPod,
  host: VolumeHost,
): Promise<NonNullable<ReadyVolume["events"]>> {
  const { fsGroup } = pod.spec.securityContext ?? {};
  const gid = fsGroup === undefined ? undefined : await host.groupOf(directory);
  if (gid === fsGroup) return [];
  const has = `but the volume ${persistent?.object.metadata.name ?? ""} has GID ${gid}`;
  const message = `The requested fsGroup is ${fsGroup}, ${has}. The volume may not be shareable.`;
  return [{ type: "Warning", reason: "AlreadyMountedVolume", message }];
}

function ancestor(path: string, levels: number): string {
  return path.split("/").slice(0, -levels).join("/");
}

/** `ROOT/plugins` of `ROOT/pods/UID/volumeDevices/KIND/NAME`. */
function pluginsOf(link: string): string {
  return `${ancestor(link, 5)}/plugins`;
}

async function devicesOf(link: string, driver: DiskDriver, host: VolumeHost): Promise<readonly string[]> {
  const plugins = pluginsOf(link);
  const stages = await driver.list(plugins, "Block", host);
  return stages.map((stage) => `${plugins}/${stage}/${podOf(link)}`);
}

/** Binds the device where it can be counted and locked, and has the pod's link point to it. */
async function map(
  { device, link, stage }: { readonly device: string; readonly link: string; readonly stage: string },
  host: VolumeHost,
  options: Abortable,
): Promise<void> {
  const bound = `${stage}/${podOf(link)}`;
  const real = await host.realPath(device);
  if ((await host.mountAt(bound)) === undefined) {
    await host.makeFile(bound, 0o640);
    await host.bindMount(real, bound);
  }
  if ((await host.readLink(link)) !== real) await host.symlink(real, link);
  await host.lockDevice(bound, options);
}

async function unmap(bound: string, host: VolumeHost, options: Abortable): Promise<void> {
  await host.unlockDevice(bound, options);
  await host.unmountByCommand(bound, options);
  await host.removeFile(bound);
}
