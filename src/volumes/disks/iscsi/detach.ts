import { messageOf } from "../../../lib/errors.ts";
import { listLevels } from "../../paths.ts";
import { checkReleased, flushMultipath, multipathOf, removeDisk, type ScsiHost } from "../scsi.ts";
import { removeInterface } from "./interfaces.ts";
import { type IscsiCall, iscsiadm, isNothing } from "./iscsiadm.ts";
import { iscsiSessions } from "./sessions.ts";
import { diskOfPath, ISCSI_PLUGIN, type IscsiDisk } from "./target.ts";

export interface DetachDeps extends IscsiCall {
  readonly host: ScsiHost;
  failedToRemove(device: string, error: unknown): void;
}

/** Takes the disk away from the kernel, and logs out if nobody uses its target any more. */
export async function detachIscsi(disk: IscsiDisk, directory: string, deps: DetachDeps): Promise<void> {
  await removeDevices(disk, deps);
  if (await isBusy(disk, directory, deps.host)) return;
  const { iqn, interface: iface, portals } = disk;
  for (const portal of portals) {
    const node = ["-m", "node", "-p", portal, "-T", iqn, "-I", iface];
    for (const [what, args] of [
      ["log out of target", ["--logout"]],
      ["delete node record", ["-o", "delete"]],
    ] as const) {
      await iscsiadm([...node, ...args], deps).catch((error: unknown) => {
        deps.signal.throwIfAborted();
        if (!isNothing(error)) throw new Error(`iscsi: failed to ${what} ${iqn} at ${portal}: ${messageOf(error)}`);
      });
    }
  }
  await removeInterface(disk, deps);
}

/** Also after a failure to remove one: to log out may help, and takes all of them away. */
async function removeDevices({ iqn, lun }: IscsiDisk, deps: DetachDeps): Promise<void> {
  const sessions = await iscsiSessions(deps.host);
  const names = sessions.flatMap((one) => (one.iqn === iqn ? (one.devices.get(lun) ?? []) : []));
  const maps = new Set<string>();
  for (const name of names) {
    const map = await multipathOf(`/dev/${name}`, deps.host);
    if (map !== undefined) maps.add(map);
    await checkReleased(map ?? `/dev/${name}`, deps.host, deps);
  }
  const work = [
    ...[...maps].map((map) => [map, () => flushMultipath(map, deps.host, deps)] as const),
    ...names.map((name) => [name, () => removeDisk(`/dev/${name}`, deps.host, deps)] as const),
  ];
  for (const [device, remove] of work) {
    try {
      await remove();
    } catch (error) {
      deps.signal.throwIfAborted();
      deps.failedToRemove(device, error);
    }
  }
}

/** True if another volume of this agent uses the target, or the session has a disk that is not ours. */
async function isBusy(disk: IscsiDisk, directory: string, host: ScsiHost): Promise<boolean> {
  const plugins = directory.slice(0, directory.indexOf(`/${ISCSI_PLUGIN}/`));
  for (const base of [`${plugins}/${ISCSI_PLUGIN}`, `${plugins}/${ISCSI_PLUGIN}/volumeDevices`]) {
    for (const name of await listLevels(base, 2, host)) {
      const other = `${base}/${name}`;
      const found = other === directory ? undefined : diskOfPath(other);
      if (found?.iqn === disk.iqn && disk.portals.includes(found.portals[0] ?? "")) return true;
    }
  }
  const sessions = (await iscsiSessions(host)).filter(({ iqn, portals }) => {
    return iqn === disk.iqn && portals.some((portal) => disk.portals.includes(portal));
  });
  return sessions.some(({ devices }) => [...devices.keys()].some((lun) => lun !== disk.lun));
}
