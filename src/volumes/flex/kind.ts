import type { Abortable } from "../../lib/abort.ts";
import type { DiskAttachments } from "../disks/disk-attachments.ts";
import { checkUnused, isExclusive } from "../disks/disk-kind.ts";
import { growFilesystem } from "../grow-filesystem.ts";
import type { ReadyVolume, Stage, VolumeHost, VolumeKind, VolumeOfPod } from "../kind.ts";
import { asStep } from "../volume-error.ts";
import type { FlexDriver } from "./driver.ts";
import type { FlexDrivers } from "./drivers.ts";
import { FLEX_LAYOUT } from "./layout.ts";
import { diskOf, flexVolumeOf, optionsOf, podOptions } from "./options.ts";

export const FLEX_PLUGIN = "kubernetes.io/flexvolume";

const ATTACH = { step: "AttachVolume.Attach failed", reason: "FailedAttachVolume" } as const;
const WAIT_FOR_ATTACH = { step: "MountVolume.WaitForAttach failed", reason: "FailedMount" } as const;
const MOUNT_DEVICE = { step: "MountVolume.MountDevice failed", reason: "FailedMount" } as const;

export interface FlexKindDeps {
  readonly drivers: FlexDrivers;
  readonly attachments: DiskAttachments;
  readonly nodeName: string;
}

/**
 * Volumes of one flexVolume driver, a program of the node that is run for each step. Every call may be repeated: a driver
 * that was killed, or whose answer was lost, is asked again with the same arguments.
 */
export function flexKind(name: string, deps: FlexKindDeps): VolumeKind {
  const { drivers, attachments, nodeName } = deps;
  /** Devices that were mounted at stages, for growing what is on them. */
  const devices = new Map<string, string>();

  const attach = async (
    of: VolumeOfPod & { readonly stage: Stage },
    driver: FlexDriver,
    options: Abortable,
  ): Promise<string> => {
    const volume = flexVolumeOf(of);
    if (attachments.isManaged)
      return attachments.wait({ name: `${name}/${volume.name}`, stage: of.stage.directory }, options);
    const spec = optionsOf(volume);
    const known = await driver.callIfSupported({ command: "isattached", args: [spec, nodeName] }, options);
    if (known?.attached === true && known.device !== "") return known.device;
    const call = { command: "attach", args: [spec, nodeName] } as const;
    return asStep(ATTACH, async () => (await driver.callIfSupported(call, options))?.device ?? "", options.signal);
  };

  return {
    plugin: name,
    refusesMountOptions: true,
    references: () => ({ objects: [], onChange: (fn, options) => drivers.onChange(fn, options) }),

    staging: {
      layout: FLEX_LAYOUT,

      async metadata(of, _deps, options) {
        const volume = flexVolumeOf(of);
        const driver = drivers.get(name);
        const { attach: isAttached } = await driver.capabilities(options);
        // Asked and not used, as in Kubernetes: only a failure of it counts.
        if (isAttached) await driver.callIfSupported({ command: "getvolumename", args: [optionsOf(volume)] }, options);
        const staged = { stage: stageOf(name, volume.name), disk: diskOf(volume) };
        return { volumeName: volume.name, ...(isAttached && staged) };
      },
      directory: ({ stage }) => stage,
      isExclusive,
      stageMetadata: ({ disk = "" }) => ({ disk }),
      /** Kubernetes takes volumes of one name for one disk, and would give a pod that of another. */
      conflict: ({ disk }, wanted) =>
        disk === undefined || disk === wanted["disk"]
          ? undefined
          : `volume "${wanted["volumeName"]}" of driver ${name} is another disk on this node: its options differ`,

      async list(pluginsDir, host) {
        const base = stageOf(name, "").slice(0, -1);
        return (await host.list(`${pluginsDir}/${base}`)).map((volume) => `${base}/${volume}`);
      },

      async stage(of, { host }, options) {
        const { directory } = of.stage;
        if ((await host.mountAt(directory)) !== undefined) return;
        const driver = drivers.get(name);
        const volume = flexVolumeOf(of);
        const device = await asStep(
          WAIT_FOR_ATTACH,
          async () => {
            const devicePath = await attach(of, driver, options);
            const call = { command: "waitforattach", args: [devicePath, optionsOf(volume)] } as const;
            return (await driver.callIfSupported(call, options))?.device ?? devicePath;
          },
          options.signal,
        );
        await asStep(MOUNT_DEVICE, () => mountDevice({ of, driver, device }, host, options), options.signal);
        devices.set(directory, device);
      },

      async unstage({ directory }, { host }, options) {
        const volumeName = directory.slice(directory.lastIndexOf("/") + 1);
        await checkUnused(directory, host);
        const driver = drivers.get(name);
        if ((await host.mountAt(directory)) !== undefined) {
          const answer = await driver.callIfSupported({ command: "unmountdevice", args: [directory] }, options);
          if (answer === undefined) await host.unmountByCommand(directory, options);
          await checkUnmounted(directory, host);
        }
        if (!attachments.isManaged)
          await driver.callIfSupported({ command: "detach", args: [volumeName, nodeName] }, options);
        devices.delete(directory);
        attachments.remove({ name: `${name}/${volumeName}`, stage: directory });
      },

      forceDown: (directory, { host }, options) => unmount(drivers.get(name), directory, { host, ...options }),
    },

    async setUp(of, { host, objects }, options) {
      const { directory, stage } = of;
      const driver = drivers.get(name);
      const { fsGroup, selinuxRelabel, requiresFSResize } = await driver.capabilities(options);
      const volume = flexVolumeOf(of);
      if (of.persistent?.isBlock === true) throw new Error("a flexVolume has no block devices");
      if ((await host.mountAt(directory)) === undefined) {
        const told = await podOptions(of, { objects }, options);
        const args = [directory, optionsOf(volume, told.options)];
        const answer = await driver.callIfSupported({ command: "mount", args, secrets: told.secrets }, options);
        if (answer === undefined) await bindStage({ stage: stage?.directory, directory, name }, host, options);
      }
      const staged = stage === undefined ? undefined : await host.mountAt(stage.directory);
      const device = devices.get(stage?.directory ?? "") ?? staged?.source ?? "";
      return {
        source: {
          kind: "path",
          path: directory,
          readonly: volume.readonly,
          isRemote: true,
          ...(!selinuxRelabel && { isUsers: true }),
        },
        // Some drivers only write files.
        isMounted: (await host.mountAt(directory)) !== undefined,
        takesGroup: fsGroup,
        ...(requiresFSResize && { expand: growth({ of, driver, device }, host) }),
      };
    },

    async tearDown({ directory }, { host }, options) {
      await unmount(drivers.get(name), directory, { host, ...options });
    },
  };
}

/** Where a volume is mounted once a node, relative to `ROOT/plugins`, as in Kubernetes. */
export function stageOf(driver: string, volume: string): string {
  return `${FLEX_PLUGIN}/${driver}/mounts/${volume}`;
}

async function mountDevice(
  { of, driver, device }: { of: VolumeOfPod & { stage: { directory: string } }; driver: FlexDriver; device: string },
  host: VolumeHost,
  options: Abortable,
): Promise<void> {
  const volume = flexVolumeOf(of);
  const { directory: target } = of.stage;
  await host.makeDir(target, 0o750);
  const args = [target, device, optionsOf(volume)];
  const answer = await driver.callIfSupported({ command: "mountdevice", args }, options);
  // Without a device there is nothing to mount once: the driver mounts for each pod.
  if (answer !== undefined || device === "") return;
  const { readonly, fsType } = volume;
  const flags = [readonly ? "ro" : "rw"];
  await host.mountDevice({ device, target, mayFormat: !readonly, options: flags, ...(fsType && { fsType }) }, options);
}

/** What the agent does for a driver that cannot mount. */
async function bindStage(
  { stage, directory, name }: { stage: string | undefined; directory: string; name: string },
  host: VolumeHost,
  options: Abortable,
): Promise<void> {
  if (stage === undefined) throw new Error(`flexVolume driver ${name} can neither attach nor mount`);
  await host.bindByCommand({ source: stage, target: directory, options: [] }, options);
}

async function unmount(
  driver: FlexDriver,
  directory: string,
  { host, ...options }: Abortable & { readonly host: VolumeHost },
): Promise<void> {
  const answer = await driver.callIfSupported({ command: "unmount", args: [directory] }, options);
  if (answer === undefined) await host.unmountByCommand(directory, options);
  await checkUnmounted(directory, host);
  // Some drivers put a link in the place of the directory.
  if ((await host.readLink(directory)) !== undefined) await host.removeFile(directory);
}

async function checkUnmounted(directory: string, host: VolumeHost): Promise<void> {
  if ((await host.mountAt(directory)) !== undefined) throw new Error(`the driver left ${directory} mounted`);
}

/** Has the driver grow the filesystem, or does it if the driver cannot. */
function growth(
  { of, driver, device }: { of: VolumeOfPod; driver: FlexDriver; device: string },
  host: VolumeHost,
): NonNullable<ReadyVolume["expand"]> {
  return async ({ bytes, fromBytes = 0 }, options) => {
    const spec = optionsOf(flexVolumeOf(of));
    const args = [spec, device, of.directory, String(bytes), String(fromBytes)];
    const answer = await driver.callIfSupported({ command: "expandfs", args }, options);
    if (answer === undefined && device !== "") await growFilesystem({ device, mountPath: of.directory }, host, options);
  };
}
