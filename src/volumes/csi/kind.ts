import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Pod, Volume } from "../../model/generated/types.ts";
import {
  podMount,
  type ReadyVolume,
  type SetUpDeps,
  type VolumeHost,
  type VolumeKind,
  type VolumeOfPod,
  type VolumeSource,
} from "../kind.ts";
import { isRemoteFilesystem } from "../mount-options.ts";
import { listLevels } from "../paths.ts";
import { asStep, isFinal } from "../volume-error.ts";
import { csiExpand, type ExpandedPlace } from "./expand.ts";
import {
  ASK_AGAIN_MS,
  CSI_PLUGIN,
  type CsiKindDeps,
  type CsiRequest,
  csiDriverObject,
  csiMessage,
  csiRequest,
  isAttachable,
  labelOf,
  registered,
  removeTarget,
  secretsOf,
  sharedFields,
} from "./request.ts";
import { csiSpace } from "./stats.ts";
import { serviceAccountTokens } from "./tokens.ts";
import { migratedField, translateInlineVolume, translatePersistentVolume } from "./translation.ts";
import {
  checkLifecycle,
  csiMetadata,
  csiVolumeOf,
  isExclusive,
  labelConflict,
  podAttributes,
  stageDirectory,
  stageMetadata,
  stagePath,
  takesGroup,
} from "./volume.ts";

const ATTACH = { step: "MountVolume.WaitForAttach failed", reason: "FailedMount" } as const;
const MOUNT_DEVICE = { step: "MountVolume.MountDevice failed", reason: "FailedMount" } as const;

/**
 * Volumes of CSI drivers: attached by a controller, staged once a node, published once a pod. Every call may be repeated
 * with the same arguments, as CSI demands of drivers, so that a call whose answer was lost is simply made again.
 */
export function csiKind(own: CsiKindDeps): VolumeKind {
  const { drivers, attached, nodeName } = own;
  /** Stages that this agent knows to be there: not staged again for each pod, nor when they are published again. */
  const staged = new Set<string>();

  /**
   * What containers get of a volume that is published at a path. What it is mounted from is known to the driver alone: a
   * server among that may be gone, so that only the kernel's table is looked at. Its files get the container's label one
   * by one, if they can have one and the mount has none.
   */
  const sourceOf = async (of: VolumeOfPod, readonly: boolean, host: VolumeHost): Promise<VolumeSource> => {
    const path = podMount(of.directory);
    const { type = "", superOptions = [] } = (await host.mountAt(path)) ?? {};
    const isLabelled = of.stage?.metadata["seLinuxMountContext"] !== undefined;
    const relabels = { relabels: !isLabelled && superOptions.includes("seclabel") };
    return {
      kind: "path",
      path,
      readonly,
      isUsers: true,
      ...(isRemoteFilesystem(type) && { isRemote: true }),
      ...(own.selinux.isOn && !readonly && relabels),
    };
  };

  const stage = async (request: CsiRequest, of: VolumeOfPod, { deps, ...options }: Staging): Promise<void> => {
    const { volume, driver, capabilities } = request;
    const { directory } = of.stage ?? { directory: "" };
    if (!capabilities.stages) return;
    const stagingPath = stagePath(directory);
    if ((await deps.host.mountAt(stagingPath)) === undefined) await deps.host.makeDir(stagingPath, 0o750);
    const secrets = await secretsOf({ ref: volume.stageSecret, field: "NodeStageSecretRef" }, deps, options);
    const { publishContext } = options;
    const { isMigrated } = volume;
    const fields = { ...sharedFields(request, of), publishContext, stagingPath, secrets };
    await driver.service.stage(fields, { signal: options.signal, isMigrated });
    staged.add(directory);
  };

  return {
    plugin: CSI_PLUGIN,
    handles: (volume) => volume.csi !== undefined || migratedField(volume) !== undefined,
    directoryOf: migratedDirectory,
    handlesPersistent: (spec) =>
      spec.volumeMode !== "Block" && (spec.csi !== undefined || migratedField(spec) !== undefined),
    persistentOf: translatePersistentVolume,
    maxBackoffMs: ASK_AGAIN_MS,

    staging: {
      // No driver is asked: what is persisted must not depend on one that may be gone.
      metadata: async (of, deps, options) =>
        csiMetadata(csiVolumeOf(of), nodeName, await labelOf(of, { ...own, ...deps }, options)),
      stageMetadata,
      driverOf: ({ driverName }) => driverName,
      isMigrated: (of) => csiVolumeOf(of).isMigrated,
      conflict: labelConflict,
      refused: (of) => {
        const { driver, accessModes } = csiVolumeOf(of);
        own.selinux.mismatch({ plugin: `${CSI_PLUGIN}/${driver}`, accessModes });
      },
      directory: stageDirectory,
      isExclusive: (of) => isExclusive(csiVolumeOf(of)),

      async list(pluginsDir, host) {
        const names = await listLevels(`${pluginsDir}/${CSI_PLUGIN}`, 2, host);
        // Stages of block volumes lie beside those of drivers.
        return names.filter((name) => !name.startsWith("volumeDevices/")).map((name) => `${CSI_PLUGIN}/${name}`);
      },

      async stage(of, deps, options) {
        const { signal } = options;
        const volume = csiVolumeOf(of);
        const object = await csiDriverObject(volume.driver, deps, options);
        const wait = () => attached.wait(of.stage, deps.objects, options);
        const publishContext = isAttachable({ volume, object }) ? await asStep(ATTACH, wait, signal) : {};
        if (staged.has(of.stage.directory)) return;
        const step = "attacher.MountDevice failed to create newCsiDriverClient";
        const work = async (): Promise<void> => {
          const request = await csiRequest({ of, step }, { drivers, ...deps }, options);
          await stage(request, of, { deps, signal, publishContext });
        };
        await asStep(MOUNT_DEVICE, work, signal);
      },

      async isRefreshed({ driverName: name = "" }, { objects }, options) {
        const object = await csiDriverObject(name, { objects }, options);
        return object?.spec.requiresRepublish === true;
      },

      async unstage({ directory, metadata, isUntouched }, { host }, options) {
        const { volumeHandle: volumeId = "", driverName = "", volumeLifecycleMode } = metadata;
        const stagingPath = stagePath(directory);
        staged.delete(directory);
        if (isUntouched !== true && volumeLifecycleMode !== "Ephemeral") {
          await checkUnused(stagingPath, host);
          const driver = registered(drivers, driverName, "attacher.UnmountDevice failed to create newCsiDriverClient");
          const { stages } = await driver.capabilities(options);
          if (stages) await driver.service.unstage({ volumeId, stagingPath }, options);
        }
        await removeTarget(stagingPath, host, options);
        attached.remove({ directory, metadata });
      },

      async discard({ directory }, { host }, options) {
        await removeTarget(stagePath(directory), host, options);
        attached.discarded(directory);
      },
    },

    async setUp(of, deps, options) {
      const step = "mounter.SetUpAt failed to get CSI client";
      const request = await csiRequest({ of, step }, { drivers, ...deps }, options);
      const context = isAttachable(request) ? await attached.context(metadataOf(of), deps.objects, options) : {};
      try {
        const published = await publish(request, of, { deps, ...options, publishContext: context });
        const source = await sourceOf(of, request.volume.readonly, deps.host);
        const ready = { ...published, source, space: csiSpace(request.volume, podMount(of.directory), own) };
        if (!isPersistent(of)) return ready;
        return { ...ready, expand: csiExpand(request.volume, placeOf(of), { drivers, ...deps }) };
      } catch (error) {
        // A driver that forgot its stages refuses to publish them: the next attempt stages again.
        if (isFinal(error)) staged.delete(of.stage?.directory ?? "");
        throw error;
      }
    },

    async find(of, { host, objects }) {
      const volume = csiVolumeOf(of);
      const path = podMount(of.directory);
      if ((await host.mountAt(path)) === undefined) return undefined;
      return {
        source: await sourceOf(of, volume.readonly, host),
        isMounted: true,
        space: csiSpace(volume, path, own),
        ...(isPersistent(of) && { expand: csiExpand(volume, placeOf(of), { drivers, objects }) }),
      };
    },

    async tearDown({ directory, metadata, isUntouched }, { host }, options) {
      const { volumeHandle = "", driverName = "" } = metadata;
      const targetPath = podMount(directory);
      if (isUntouched !== true) {
        const driver = registered(drivers, driverName, "Unmounter.TearDownAt failed to get CSI client");
        await driver.service.unpublish({ volumeId: volumeHandle, targetPath }, options);
      }
      await removeTarget(targetPath, host, options);
    },

    discard: ({ directory }, { host }, options) => removeTarget(podMount(directory), host, options),
  };
}

/** What is mounted elsewhere is in use, whoever mounted it there: its driver must not take its device away. */
async function checkUnused(stagingPath: string, host: Pick<VolumeHost, "otherMounts">): Promise<void> {
  // The same directory under another name of the agent's root is no other place.
  const own = stagingPath.slice(stagingPath.lastIndexOf(`/plugins/${CSI_PLUGIN}/`));
  const others = (await host.otherMounts(stagingPath, { isWhole: true })).filter((path) => !path.includes(own));
  if (others.length === 0) return;
  throw new Error(`the device mount path "${stagingPath}" is still mounted by other references [${others.join(" ")}]`);
}

/** A disk that a pod names itself by an in-tree kind is a PersistentVolume with a name of its own, as in Kubernetes. */
function migratedDirectory(volume: Volume, { metadata }: Pod): string | undefined {
  try {
    const name = translateInlineVolume(volume, metadata.namespace ?? "")?.metadata.name;
    const directory = name?.replaceAll("/", "~") ?? "";
    return ["", ".", ".."].includes(directory) ? undefined : directory;
  } catch {
    // What is wrong with it is reported when it is set up.
    return undefined;
  }
}

/** Only what is behind a claim can grow. */
function isPersistent({ persistent }: VolumeOfPod): boolean {
  return persistent !== undefined;
}

function placeOf({ directory, stage }: VolumeOfPod): ExpandedPlace {
  return { volumePath: podMount(directory), stagingPath: stagePath(stage?.directory ?? "") };
}

interface Staging extends Abortable {
  readonly deps: SetUpDeps;
  /** What the attachment tells the driver. */
  readonly publishContext: Readonly<Record<string, string>>;
}

async function publish(
  request: CsiRequest,
  of: VolumeOfPod,
  { deps, publishContext, ...options }: Staging,
): Promise<Omit<ReadyVolume, "source">> {
  const { volume, driver, capabilities, object } = request;
  try {
    checkLifecycle(volume, object);
  } catch (error) {
    throw new Error(csiMessage(`mounter.SetupAt failed to check volume lifecycle mode: ${messageOf(error)}`));
  }
  const targetPath = podMount(of.directory);
  const isStaged = volume.lifecycle === "Persistent" && capabilities.stages;
  const secrets = await secretsOf({ ref: volume.publishSecret, field: "NodePublishSecretRef" }, deps, options);
  const tokens = await serviceAccountTokens(object, of.pod, { ...deps, ...options });
  const inSecrets = object?.spec.serviceAccountTokenInSecrets === true;
  const { context, ...rest } = sharedFields(request, of);
  const fields = {
    ...rest,
    publishContext,
    stagingPath: isStaged ? stagePath(of.stage?.directory ?? "") : "",
    targetPath,
    readonly: volume.readonly,
    secrets: { ...secrets, ...(inSecrets && tokens.attributes) },
    context: {
      ...context,
      ...(object?.spec.podInfoOnMount === true && podAttributes(of.pod, volume.lifecycle)),
      ...(!inSecrets && tokens.attributes),
    },
  };
  await driver.service.publish(fields, { ...options, isMigrated: volume.isMigrated });
  const refresh = refreshTime(request, tokens, deps);
  return {
    isMounted: true,
    takesGroup: takesGroup(volume, capabilities, object),
    ...refresh,
  };
}

function metadataOf({ stage }: VolumeOfPod): Readonly<Record<string, string>> {
  if (stage === undefined) throw new Error("a CSI volume is set up without its stage");
  return stage.metadata;
}

/** When the driver wants the volume to be published again, by wall-clock time in milliseconds. */
function refreshTime(
  { object }: CsiRequest,
  tokens: { readonly refreshAt: number | undefined },
  { clock, node }: SetUpDeps,
): { refreshAt?: number } {
  if (object?.spec.requiresRepublish !== true) return {};
  return { refreshAt: Math.min(clock.now().wall + node.syncMs, tokens.refreshAt ?? Number.POSITIVE_INFINITY) };
}
