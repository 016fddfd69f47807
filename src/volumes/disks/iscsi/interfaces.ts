import { messageOf } from "../../../lib/errors.ts";
import { type IscsiCall, iscsiadm, isInUse, isNothing } from "./iscsiadm.ts";
import type { IscsiDisk } from "./target.ts";

/** The transport of an interface: `tcp`, or that of an adapter. */
export async function transportOf(name: string, call: IscsiCall): Promise<string> {
  const shown = await iscsiadm(["-m", "iface", "-I", name, "-o", "show"], call).catch((error: unknown) => {
    throw new Error(`iscsi: could not read iface ${name} error: ${messageOf(error)}`);
  });
  const transport = /^iface\.transport_name = (.*)$/m.exec(shown)?.[1];
  if (transport === undefined) throw new Error(`could not parse iface file for ${name}`);
  return transport === "<empty>" ? "tcp" : transport;
}

/** Makes an interface of the disk's own, a copy of the one it names, with the name of an initiator. Safe to repeat. */
export async function copyInterface(disk: IscsiDisk, call: IscsiCall): Promise<void> {
  const { interface: name, initialInterface, initiatorName } = disk;
  if (name === initialInterface) throw new Error(`iscsi: cannot clone iface with same name: ${name}`);
  const shown = await iscsiadm(["-m", "iface", "-I", initialInterface, "-o", "show"], call);
  const settings = new Map(parseInterface(shown)).set("iface.initiatorname", initiatorName);
  await iscsiadm(["-m", "iface", "-I", name, "-o", "new"], call).catch((error: unknown) => {
    if (!isInUse(error)) throw new Error(`iscsi: failed to create new iface: ${messageOf(error)}`);
  });
  for (const [key, value] of [...settings].sort(([a], [b]) => (a < b ? -1 : 1))) {
    await iscsiadm(["-m", "iface", "-I", name, "-o", "update", "-n", key, "-v", value], call).catch(
      async (error: unknown) => {
        // A session uses it: it is what it was made to be.
        if (isInUse(error)) return;
        await removeInterface(disk, call).catch(() => undefined);
        throw new Error(`iscsi: failed to update iface records: ${messageOf(error)}`);
      },
    );
  }
}

/** Removes the interface that was made for the disk; others are not ours. */
export async function removeInterface(disk: IscsiDisk, call: IscsiCall): Promise<void> {
  const isOwn = disk.initiatorName !== "" && disk.interface === `${disk.portals[0]}:${disk.name}`;
  if (!isOwn) return;
  await iscsiadm(["-m", "iface", "-I", disk.interface, "-o", "delete"], call).catch((error: unknown) => {
    if (!isNothing(error)) throw error;
  });
}

/** The settings of an interface that a copy gets. Pure. */
export function parseInterface(shown: string): readonly (readonly [string, string])[] {
  return shown.split("\n").flatMap((line) => {
    const [, key = "", value = ""] = /^(iface\.\S+) = (.*)$/.exec(line) ?? [];
    // The name of an interface is not a setting of it.
    if (key === "" || value === "<empty>" || key === "iface.iscsi_ifacename") return [];
    return [[key, value] as const];
  });
}
