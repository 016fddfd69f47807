import { messageOf } from "../../../lib/errors.ts";
import type { SetUpDeps } from "../../kind.ts";
import { multipathOf, type ScsiHost, writeKernelFile } from "../scsi.ts";
import { type ChapSecrets, setDiscoveryChap, setSessionChap } from "./chap.ts";
import { copyInterface, removeInterface, transportOf } from "./interfaces.ts";
import { type IscsiCall, iscsiadm } from "./iscsiadm.ts";
import { iscsiSessions } from "./sessions.ts";
import type { IscsiDisk } from "./target.ts";

/** A volume with several portals is mounted with fewer paths after this many rounds, as in Kubernetes. */
const ENOUGH_PATHS = 2;
const LEAST_ROUNDS = 2;
const MOST_ROUNDS = 5;
/** A device, and a multipath device over several, appear within these many seconds, or not at all. */
const DEVICE_S = 30;
const MULTIPATH_S = 10;

export interface AttachDeps extends IscsiCall {
  readonly host: ScsiHost;
  readonly clock: SetUpDeps["clock"];
  /**
   * Runs work alone for the target: nobody logs out while another logs in. A turn is one portal, so that others of the
   * target do not wait for all portals of one volume that are gone; its device holds the session by the end of it.
   */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
}

/** Logs in where nobody is logged in yet and waits for the disk. Resolves to the path of its device. */
export async function attachIscsi(disk: IscsiDisk, chap: ChapSecrets, deps: AttachDeps): Promise<string> {
  const transport = await transportOf(disk.initialInterface, deps);
  if (disk.initiatorName !== "") await copyInterface(disk, deps);
  const paths = new Map<string, string>();
  let failure = "";
  for (let round = 1; round <= MOST_ROUNDS; round++) {
    for (const portal of disk.portals.filter((one) => !paths.has(one))) {
      try {
        paths.set(portal, await deps.inTurn(() => attachPath({ disk, chap, portal, transport }, deps)));
      } catch (error) {
        deps.signal.throwIfAborted();
        failure = messageOf(error);
      }
    }
    if (paths.size === 0) {
      await removeInterface(disk, deps).catch(() => undefined);
      throw new Error(`failed to get any path for iscsi disk, last err seen:\n${failure}`);
    }
    if (paths.size === disk.portals.length || (paths.size >= ENOUGH_PATHS && round >= LEAST_ROUNDS)) break;
  }
  const found = [...paths.values()];
  return (await multipath(found, disk.portals.length > 1 ? MULTIPATH_S : 0, deps)) ?? found[0] ?? "";
}

interface Path {
  readonly disk: IscsiDisk;
  readonly chap: ChapSecrets;
  readonly portal: string;
  readonly transport: string;
}

async function attachPath(path: Path, deps: AttachDeps): Promise<string> {
  const { disk, portal } = path;
  const hostOf = async (): Promise<number | undefined> =>
    (await iscsiSessions(deps.host)).find(({ iqn, portals }) => iqn === disk.iqn && portals.includes(portal))?.host;
  let number = await hostOf();
  if (number === undefined) {
    await logIn(path, deps);
    number = await hostOf();
    if (number === undefined)
      throw new Error(`iscsi: could not get SCSI host number for portal ${portal} after logging in`);
  }
  // Only this unit: others that the node should not know of would cause errors once they are gone.
  await writeKernelFile(`/sys/class/scsi_host/host${number}/scan`, `0 0 ${disk.lun}`, deps);
  return device(path, deps);
}

async function logIn({ disk, chap, portal }: Path, deps: AttachDeps): Promise<void> {
  const { iqn, interface: iface } = disk;
  const discovery = ["-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface];
  await iscsiadm([...discovery, "-o", "new"], deps).catch(ignore(deps));
  await setDiscoveryChap(discovery, chap, deps).catch((error: unknown) => {
    throw new Error(`iscsi: failed to update discoverydb to portal ${portal} error: ${messageOf(error)}`);
  });
  await iscsiadm([...discovery, "--discover"], deps).catch(async (error: unknown) => {
    await iscsiadm([...discovery, "-o", "delete"], deps).catch(ignore(deps));
    throw new Error(`iscsi: failed to sendtargets to portal ${portal} output: ${messageOf(error)}`);
  });
  const node = ["-m", "node", "-p", portal, "-T", iqn, "-I", iface];
  // A login would otherwise scan for all units of the target; an older open-iscsi does not know it.
  await iscsiadm([...node, "-o", "update", "-n", "node.session.scan", "-v", "manual"], deps).catch(ignore(deps));
  await setSessionChap(node, chap, deps).catch((error: unknown) => {
    throw new Error(`iscsi: failed to update iscsi node to portal ${portal} error: ${messageOf(error)}`);
  });
  await iscsiadm([...node, "--login"], { ...deps, isLogin: true }).catch(async (error: unknown) => {
    await iscsiadm([...node, "-o", "delete"], deps).catch(ignore(deps));
    throw new Error(`iscsi: failed to attach disk: Error: ${messageOf(error)}`);
  });
  // The machine must not wait for it at its next start.
  const startup = ["-m", "node", "-p", portal, "-T", iqn, "-o", "update", "-n", "node.startup", "-v", "manual"];
  await iscsiadm(startup, deps).catch(ignore(deps));
}

/** Waits for the link that udev makes for the device. */
async function device({ disk, portal, transport }: Path, deps: AttachDeps): Promise<string> {
  const base = "/dev/disk/by-path";
  const name = `ip-${portal.replaceAll(/[[\]]/g, "")}-iscsi-${disk.iqn}-lun-${disk.lun}`;
  const isIt = (one: string): boolean =>
    transport === "tcp" ? one === name : one.startsWith("pci-") && one.endsWith(`-${name}`);
  for (let second = 0; ; second++) {
    const found = (await deps.host.list(base)).find(isIt);
    if (found !== undefined) return `${base}/${found}`;
    if (second >= DEVICE_S) throw new Error(`Timed out waiting for device at path ${base}/${name} after ${DEVICE_S}s`);
    await deps.clock.sleep(1000, deps);
  }
}

async function multipath(paths: readonly string[], seconds: number, deps: AttachDeps): Promise<string | undefined> {
  for (let second = 0; ; second++) {
    for (const path of paths) {
      const found = await multipathOf(path, deps.host);
      if (found !== undefined) return found;
    }
    if (second >= seconds) return undefined;
    await deps.clock.sleep(1000, deps);
  }
}

/** A step that may fail; an abort ends all of it. */
function ignore({ signal }: AttachDeps): () => void {
  return () => signal.throwIfAborted();
}
