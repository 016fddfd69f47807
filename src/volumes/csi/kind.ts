import type { CsiCapabilities, CsiStageRequest } from "../../adapters/plugins/csi-client.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { CSIDriver, SecretReference } from "../../model/generated/types.ts";
import {
  podMount,
  type ReadyVolume,
  removeMountTarget,
  type SetUpDeps,
  type Stage,
  type VolumeHost,
  type VolumeKind,
  type VolumeOfPod,
} from "../kind.ts";
import { listLevels } from "../paths.ts";
import type { AttachedVolumes } from "./attachment.ts";
import type { CsiDriver, CsiDrivers } from "./driver.ts";
import { serviceAccountTokens } from "./tokens.ts";
import { migratedField } from "./translation.ts";
import {
  type CsiVolume,
  checkLifecycle,
  csiMetadata,
  csiVolumeOf,
  podAttributes,
  stageDirectory,
  stagePath,
  takesGroup,
  useOf,
} from "./volume.ts";

/** Between two attempts at most, in milliseconds: a driver or an attachment may come at any time. */
const ASK_AGAIN_MS = 5000;
/** A volume that its driver wants to publish again is, after this time in milliseconds. */
const REPUBLISH_MS = 60_000;

export interface CsiKindDeps {
  readonly drivers: CsiDrivers;
  readonly attached: AttachedVolumes;
  readonly nodeName: string;
}

/** What one step of a volume works with. */
interface Request {
  readonly volume: CsiVolume;
  readonly driver: CsiDriver;
  readonly capabilities: CsiCapabilities;
  readonly object: CSIDriver | undefined;
}

/**
 * Volumes of CSI drivers: attached by a controller, staged once a node, published once a pod. Every call may be repeated
 * with the same arguments, as CSI demands of drivers, so that a call whose answer was lost is simply made again.
 */
export function csiKind({ drivers, attached, nodeName }: CsiKindDeps): VolumeKind {
  const requestOf = async (of: VolumeOfPod, deps: SetUpDeps, options: Abortable): Promise<Request> => {
    const volume = csiVolumeOf(of);
    const object = await deps.objects.get({ kind: "CSIDriver", namespace: "", name: volume.driver }, options);
    checkLifecycle(volume, object);
    const driver = drivers.get(volume.driver);
    return { volume, object, driver, capabilities: await driver.capabilities(options) };
  };

  return {
    plugin: "kubernetes.io/csi",
    handles: (volume) => volume.csi !== undefined || migratedField(volume) !== undefined,
    handlesPersistent: (spec) => spec.csi !== undefined || migratedField(spec) !== undefined,
    maxBackoffMs: ASK_AGAIN_MS,

    staging: {
      // Nothing is asked of anybody: what is persisted must not depend on a driver that may be gone.
      metadata: (of) => Promise.resolve(csiMetadata(csiVolumeOf(of), nodeName)),
      directory: stageDirectory,

      async list(pluginsDir, host) {
        const names = await listLevels(`${pluginsDir}/kubernetes.io/csi`, 2, host);
        // Stages of block volumes of the original lie beside those of drivers.
        return names.filter((name) => !name.startsWith("volumeDevices/")).map((name) => `kubernetes.io/csi/${name}`);
      },

      async stage(of, deps, options) {
        const request = await requestOf(of, deps, options);
        if (request.volume.lifecycle === "Ephemeral") return;
        const isAttachable = request.object?.spec.attachRequired !== false;
        const publishContext = isAttachable ? await attached.wait(of.stage.metadata, deps.objects, options) : {};
        if (!request.capabilities.stages) return;
        const stagingPath = stagePath(of.stage.directory);
        await deps.host.makeDir(stagingPath, 0o750);
        const { volume, driver } = request;
        const secrets = await secretsOf({ ref: volume.stageSecret, field: "NodeStageSecretRef" }, deps, options);
        await driver.service.stage({ ...common(request, of), publishContext, stagingPath, secrets }, options);
      },

      async isRefreshed({ driverName: name = "" }, { objects }, options) {
        const object = await objects.get({ kind: "CSIDriver", namespace: "", name }, options);
        return object?.spec.requiresRepublish === true;
      },

      async unstage(stage, { host }, options) {
        const { volumeHandle = "", driverName = "", volumeLifecycleMode } = stage.metadata;
        const stagingPath = stagePath(stage.directory);
        if (volumeLifecycleMode !== "Ephemeral") {
          const driver = drivers.get(driverName);
          const { stages } = await driver.capabilities(options);
          if (stages) await driver.service.unstage({ volumeId: volumeHandle, stagingPath }, options);
        }
        await removeTarget(stagingPath, host, options);
        attached.remove(stage.metadata);
      },
    },

    async setUp(of, deps, options) {
      const request = await requestOf(of, deps, options);
      const { volume, driver, capabilities, object } = request;
      const isPersistent = volume.lifecycle === "Persistent";
      const isAttachable = isPersistent && object?.spec.attachRequired !== false;
      const publishContext = isAttachable ? await attached.context(metadataOf(of), deps.objects, options) : {};
      const targetPath = podMount(of.directory);
      const tokens = await serviceAccountTokens(object, of.pod, { ...deps, ...options });
      const secrets = await secretsOf({ ref: volume.publishSecret, field: "NodePublishSecretRef" }, deps, options);
      const inSecrets = object?.spec.serviceAccountTokenInSecrets === true;
      const { context, ...rest } = common(request, of);
      await driver.service.publish(
        {
          ...rest,
          publishContext,
          stagingPath: isPersistent && capabilities.stages ? stagePath(of.stage?.directory ?? "") : "",
          targetPath,
          readonly: volume.readonly,
          secrets: { ...secrets, ...(inSecrets && tokens.attributes) },
          context: {
            ...context,
            ...(object?.spec.podInfoOnMount === true && podAttributes(of.pod, volume.lifecycle)),
            ...(!inSecrets && tokens.attributes),
          },
        },
        options,
      );
      return readyVolume(request, { targetPath, refreshAt: refreshTime(request, tokens, deps) });
    },

    async tearDown({ directory, metadata }, { host }, options) {
      const { volumeHandle = "", driverName = "" } = metadata;
      const targetPath = podMount(directory);
      await drivers.get(driverName).service.unpublish({ volumeId: volumeHandle, targetPath }, options);
      await removeTarget(targetPath, host, options);
    },
  };
}

function metadataOf({ stage }: VolumeOfPod): Stage["metadata"] {
  if (stage === undefined) throw new Error("a CSI volume is set up without its stage");
  return stage.metadata;
}

/** What staging and publishing have in common. */
function common(
  { volume, capabilities }: Request,
  { pod }: VolumeOfPod,
): Pick<CsiStageRequest, "volumeId" | "use" | "context"> {
  return { volumeId: volume.handle, use: useOf(volume, capabilities, pod), context: volume.attributes };
}

function readyVolume(
  { volume, capabilities, object }: Request,
  { targetPath: path, refreshAt }: { readonly targetPath: string; readonly refreshAt: number | undefined },
): ReadyVolume {
  const { readonly, isBlock } = volume;
  const refresh = refreshAt === undefined ? {} : { refreshAt };
  if (isBlock) return { source: { kind: "device", path, readonly }, ...refresh };
  return {
    source: { kind: "path", path, readonly, isUsers: true },
    isMounted: true,
    takesGroup: takesGroup(volume, capabilities, object),
    ...refresh,
  };
}

/** When the driver wants the volume to be published again, by wall-clock time in milliseconds. */
function refreshTime(
  { object }: Request,
  tokens: { readonly refreshAt: number | undefined },
  { clock }: SetUpDeps,
): number | undefined {
  if (object?.spec.requiresRepublish !== true) return undefined;
  return Math.min(clock.now().wall + REPUBLISH_MS, tokens.refreshAt ?? Number.POSITIVE_INFINITY);
}

async function secretsOf(
  { ref, field }: { readonly ref: SecretReference | undefined; readonly field: string },
  { objects }: SetUpDeps,
  options: Abortable,
): Promise<Readonly<Record<string, string>>> {
  if (ref === undefined) return {};
  const { name = "", namespace = "" } = ref;
  const secret = await objects.get({ kind: "Secret", namespace, name }, options);
  if (secret === undefined)
    throw new Error(`fetching ${field} ${namespace}/${name} failed: secret "${name}" not found`);
  const texts = Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]);
  return Object.fromEntries(texts) as Record<string, string>; // reason: built from pairs of strings
}

/** Drivers remove what they mounted at; some forget the directory or file. Nothing that is still mounted is ever removed. */
async function removeTarget(path: string, host: VolumeHost, options: Abortable): Promise<void> {
  if (await host.isMountPoint(path)) throw new Error(`the driver left ${path} mounted`);
  await removeMountTarget(path, host, options);
}
