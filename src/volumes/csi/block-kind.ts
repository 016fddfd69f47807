import { basename } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import {
  MAP_OPERATIONS,
  type SetUpDeps,
  unmountAll,
  type VolumeHost,
  type VolumeKind,
  type VolumeOfPod,
} from "../kind.ts";
import { asStep, isFinal } from "../volume-error.ts";
import { BLOCK_DIRECTORY, type BlockPaths, blockLayout } from "./block-paths.ts";
import { csiExpand, type ExpandedPlace } from "./expand.ts";
import {
  ASK_AGAIN_MS,
  CSI_PLUGIN,
  type CsiKindDeps,
  type CsiRequest,
  csiDriverObject,
  csiRequest,
  isAttachable,
  registered,
  removeTarget,
  secretsOf,
  sharedFields,
} from "./request.ts";
import { csiSpace } from "./stats.ts";
import { migratedField, translatePersistentVolume } from "./translation.ts";
import { csiMetadata, csiVolumeOf, isExclusive, podAttributes } from "./volume.ts";

const ATTACH = { step: "MapVolume.WaitForAttach failed", reason: "FailedMapVolume" } as const;
const SET_UP_DEVICE = { step: "MapVolume.SetUpDevice failed", reason: "FailedMapVolume" } as const;
const MAP_POD_DEVICE = { step: "MapVolume.MapPodDevice failed", reason: "FailedMapVolume" } as const;
const MAP = { step: "MapVolume.MapBlockVolume failed", reason: "FailedMapVolume" } as const;

/** Raw block volumes of CSI drivers, at the paths of Kubernetes: see `BlockPaths`. */
export function csiBlockKind(own: CsiKindDeps, paths: BlockPaths): VolumeKind {
  const { drivers, attached, nodeName } = own;
  /** Volumes that this agent knows to be staged. */
  const staged = new Set<string>();

  const stage = async (request: CsiRequest, of: VolumeOfPod, { deps, ...options }: Publishing): Promise<void> => {
    const { volume, driver, capabilities } = request;
    if (!capabilities.stages) return;
    const secrets = await secretsOf({ ref: volume.stageSecret, field: "NodeStageSecretRef" }, deps, options);
    const { publishContext, signal } = options;
    const stagingPath = paths.stagingPath(volume.name);
    const { isMigrated } = volume;
    await driver.service.stage(
      { ...sharedFields(request, of), publishContext, stagingPath, secrets },
      { signal, isMigrated },
    );
    staged.add(volume.name);
  };

  const publish = async (request: CsiRequest, of: VolumeOfPod, { deps, ...options }: Publishing): Promise<void> => {
    const { volume, driver, object } = request;
    const { name, publishPath: targetPath } = paths.ofLink(of.directory);
    await deps.host.makeDir(paths.publishDir(name), 0o750);
    const secrets = await secretsOf({ ref: volume.publishSecret, field: "NodePublishSecretRef" }, deps, options);
    const { publishContext, signal } = options;
    const { context, ...rest } = sharedFields(request, of);
    const attributes = object?.spec.podInfoOnMount === true ? podAttributes(of.pod, volume.lifecycle) : {};
    await driver.service.publish(
      {
        ...rest,
        publishContext,
        // Also of a driver that does not stage, as in Kubernetes.
        stagingPath: paths.stagingPath(name),
        targetPath,
        readonly: volume.readonly,
        secrets,
        context: { ...context, ...attributes },
      },
      { signal, isMigrated: volume.isMigrated },
    );
  };

  return {
    plugin: CSI_PLUGIN,
    operations: MAP_OPERATIONS,
    persistentOf: translatePersistentVolume,
    handlesPersistent: (spec) =>
      spec.volumeMode === "Block" && (spec.csi !== undefined || migratedField(spec) !== undefined),
    maxBackoffMs: ASK_AGAIN_MS,

    staging: {
      layout: blockLayout(paths),
      metadata: (of) => {
        const { volumeLifecycleMode: _always, ...metadata } = csiMetadata(csiVolumeOf(of), nodeName);
        return Promise.resolve(metadata);
      },
      directory: ({ specVolID = "" }) => `${BLOCK_DIRECTORY}/${specVolID}`,
      driverOf: ({ driverName }) => driverName,
      isMigrated: (of) => csiVolumeOf(of).isMigrated,
      isExclusive: (of) => isExclusive(csiVolumeOf(of)),
      list: async (_plugins, host) => (await paths.names(host)).map((name) => `${BLOCK_DIRECTORY}/${name}`),

      async stage(of, deps, options) {
        const { signal } = options;
        const volume = csiVolumeOf(of);
        const object = await csiDriverObject(volume.driver, deps, options);
        const wait = () => attached.wait(of.stage, deps.objects, options);
        const publishContext = isAttachable({ volume, object }) ? await asStep(ATTACH, wait, signal) : {};
        if (staged.has(volume.name)) return;
        const step = "blockMapper.SetUpDevice failed to get CSI client";
        const work = async (): Promise<void> => {
          const request = await csiRequest({ of, step }, { drivers, ...deps }, options);
          await stage(request, of, { deps, signal, publishContext });
        };
        await asStep(SET_UP_DEVICE, work, signal);
      },

      async unstage({ directory, metadata, isUntouched }, { host }, options) {
        const { volumeHandle: volumeId = "", driverName = "" } = metadata;
        const name = basename(directory);
        const stagingPath = paths.stagingPath(name);
        staged.delete(name);
        const users = await host.list(paths.mapDir(name));
        if (users.length > 0) throw new Error(`the device "${paths.mapDir(name)}" is still referenced from other Pods`);
        if (isUntouched !== true) {
          const driver = registered(drivers, driverName, "blockMapper.TearDownDevice failed to get CSI client");
          const { stages } = await driver.capabilities(options);
          if (stages) await driver.service.unstage({ volumeId, stagingPath }, options);
          // Some drivers leave their own files there. What is still mounted is never entered.
          await host.removeTree(stagingPath);
        }
        attached.remove({ directory, metadata });
      },

      async forceDown(link, { host }, options) {
        const { publishPath } = paths.ofLink(link);
        await unmap(link, paths, { host, ...options });
        await unmountAll(publishPath, host);
        await removeTarget(publishPath, host, options);
      },

      async discard({ directory }, { host }) {
        await host.removeTree(paths.stagingPath(basename(directory)));
        attached.discarded(directory);
      },
    },

    async setUp(of, deps, options) {
      const { signal } = options;
      const step = "blockMapper.MapPodDevice failed to get CSI client";
      const request = await asStep(
        MAP_POD_DEVICE,
        () => csiRequest({ of, step }, { drivers, ...deps }, options),
        signal,
      );
      const { metadata = {} } = of.stage ?? {};
      const publishContext = isAttachable(request) ? await attached.context(metadata, deps.objects, options) : {};
      try {
        await asStep(MAP_POD_DEVICE, () => publish(request, of, { deps, ...options, publishContext }), signal);
      } catch (error) {
        // A driver that forgot its stages refuses to publish them: the next attempt stages again.
        if (isFinal(error)) staged.delete(request.volume.name);
        throw error;
      }
      await asStep(MAP, () => map(of.directory, paths, { host: deps.host, ...options }), signal);
      const { readonly, name } = request.volume;
      return {
        source: { kind: "device", path: of.directory, readonly },
        space: csiSpace(request.volume, paths.ofLink(of.directory).devicePath, own),
        expand: csiExpand(request.volume, await placeOf(of, paths, deps.host), { drivers, ...deps }),
        events: [
          `globalMapPath "${paths.mapDir(name)}"`,
          `volumeMapPath "${of.directory.replace(/\/[^/]*$/, "")}"`,
        ].map((where) => ({
          reason: "SuccessfulMountVolume",
          message: `MapVolume.MapPodDevice succeeded for volume "${name}" ${where}`,
        })),
      };
    },

    async find(of, { host, objects }, options) {
      const volume = csiVolumeOf(of);
      const { devicePath } = paths.ofLink(of.directory);
      if ((await host.kindOf(devicePath, options)) !== "blockDevice") return undefined;
      return {
        source: { kind: "device", path: of.directory, readonly: volume.readonly },
        space: csiSpace(volume, devicePath, own),
        expand: csiExpand(volume, await placeOf(of, paths, host), { drivers, objects }),
      };
    },

    async tearDown({ directory: link, metadata, isUntouched }, { host }, options) {
      const { volumeHandle: volumeId = "", driverName = "" } = metadata;
      const { publishPath: targetPath } = paths.ofLink(link);
      await unmap(link, paths, { host, ...options });
      if (isUntouched !== true) {
        const driver = registered(drivers, driverName, "blockMapper.UnmapPodDevice failed to get CSI client");
        await driver.service.unpublish({ volumeId, targetPath }, options);
      }
      await removeTarget(targetPath, host, options);
    },

    discard: ({ directory }, { host }, options) => removeTarget(paths.ofLink(directory).publishPath, host, options),
  };
}

interface Publishing extends Abortable {
  readonly deps: SetUpDeps;
  /** What the attachment tells the driver. */
  readonly publishContext: Readonly<Record<string, string>>;
}

async function placeOf({ directory: link }: VolumeOfPod, paths: BlockPaths, host: VolumeHost): Promise<ExpandedPlace> {
  const { name, publishPath } = paths.ofLink(link);
  return { volumePath: await host.realPath(publishPath), stagingPath: paths.stagingPath(name) };
}

type Mapping = Abortable & { readonly host: VolumeHost };

/** Binds the published device where it can be counted and locked, and has the pod's link point to it. */
async function map(link: string, paths: BlockPaths, { host, ...options }: Mapping): Promise<void> {
  const { name, publishPath, devicePath } = paths.ofLink(link);
  const device = await host.realPath(publishPath);
  if ((await host.kindOf(device, options)) !== "blockDevice") {
    throw new Error(`what the driver published at ${publishPath} is not a block device`);
  }
  await host.makeDir(paths.mapDir(name), 0o750);
  if ((await host.kindOf(devicePath, options)) !== "blockDevice") {
    await host.makeFile(devicePath, 0o640);
    await host.bindMount(device, devicePath);
  }
  if ((await host.readLink(link)) !== device) await host.symlink(device, link);
  await host.lockDevice(devicePath, options);
}

async function unmap(link: string, paths: BlockPaths, { host, ...options }: Mapping): Promise<void> {
  const { devicePath } = paths.ofLink(link);
  await host.unlockDevice(devicePath, options);
  await unmountAll(devicePath, host);
  await host.removeFile(devicePath);
}
