import type { ScsiHost } from "../scsi.ts";

const HOSTS = "/sys/class/iscsi_host";

/** A session of open-iscsi, as the kernel shows it. */
export interface IscsiSession {
  /** The number of its SCSI host. */
  readonly host: number;
  readonly iqn: string;
  /** Current and persistent ones: `10.0.0.1:3260`. */
  readonly portals: readonly string[];
  /** Block devices by their logical units: `sdb`. */
  readonly devices: ReadonlyMap<number, string>;
}

/** All sessions of this node. What disappears while it is read is left out. */
export async function iscsiSessions(host: ScsiHost): Promise<readonly IscsiSession[]> {
  const found: IscsiSession[] = [];
  for (const name of await host.list(HOSTS)) {
    const number = Number(/^host(\d+)$/.exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(number)) continue;
    const device = `${HOSTS}/${name}/device`;
    const sessions = (await host.list(device)).filter((one) => one.startsWith("session"));
    for (const session of sessions) {
      const path = `${device}/${session}`;
      const iqn = await read(`${path}/iscsi_session/${session}/targetname`, host);
      if (iqn === "") continue;
      const portals = await portalsOf(path, host);
      found.push({ host: number, iqn, portals, devices: await devicesOf(path, number, host) });
    }
  }
  return found;
}

async function portalsOf(session: string, host: ScsiHost): Promise<readonly string[]> {
  const portals: string[] = [];
  for (const name of await host.list(session)) {
    if (!name.startsWith("connection")) continue;
    const path = `${session}/${name}/iscsi_connection/${name}`;
    for (const [address, port] of [
      ["address", "port"],
      ["persistent_address", "persistent_port"],
    ] as const) {
      const [ip, number] = [await read(`${path}/${address}`, host), await read(`${path}/${port}`, host)];
      if (ip !== "" && number !== "") portals.push(`${ip.includes(":") ? `[${ip}]` : ip}:${number}`);
    }
  }
  return [...new Set(portals)];
}

/** Channel and target are always 0 for iSCSI. */
async function devicesOf(session: string, number: number, host: ScsiHost): Promise<ReadonlyMap<number, string>> {
  const devices = new Map<number, string>();
  const target = `${session}/target${number}:0:0`;
  for (const unit of await host.list(target)) {
    const lun = /^\d+:0:0:(\d+)$/.exec(unit)?.[1];
    if (lun === undefined) continue;
    const [name] = await host.list(`${target}/${unit}/block`);
    if (name !== undefined) devices.set(Number(lun), name);
  }
  return devices;
}

async function read(path: string, host: ScsiHost): Promise<string> {
  return ((await host.readFile(path).catch(() => undefined)) ?? "").trim();
}
