import type { CommandResult } from "../../src/adapters/host/volume-host.ts";
import type { VolumeMachine } from "./volume-machine.ts";

interface FakeTarget {
  readonly portal: string;
  readonly iqn: string;
  readonly luns: readonly number[];
  /** What a login must have set. */
  readonly chap?: Readonly<Record<string, string>>;
}

interface FakeSession {
  readonly portal: string;
  readonly iqn: string;
  readonly host: number;
  /** `sdb` by unit. */
  readonly devices: Map<number, string>;
}

const ok = (stdout = ""): CommandResult => ({ code: 0, stdout, stderr: "" });
const failed = (code: number, stderr: string): CommandResult => ({ code, stdout: "", stderr });

/** Targets on a network, and the open-iscsi of a machine in memory with what the kernel shows of it. */
export class FakeIscsi {
  readonly targets: FakeTarget[] = [];
  readonly sessions: FakeSession[] = [];
  /** Interfaces with their settings, beside `default`. */
  readonly interfaces = new Map<string, Map<string, string>>();
  /** Records of nodes with their settings, by portal and target. */
  readonly nodes = new Map<string, Map<string, string>>();
  readonly discoveries = new Map<string, Map<string, string>>();
  /** Portals that do not answer. */
  readonly unreachable = new Set<string>();
  private hosts = 0;
  private letters = 0;

  constructor(private readonly machine: VolumeMachine) {
    machine.onRun = (command, input) => this.run(command, input ?? "");
    machine.realPath = async (path) => {
      const found = this.all().find(({ path: link }) => link === path);
      return found === undefined ? path : `/dev/${found.name}`;
    };
  }

  /** Disks that there are: the path of udev, and the device. */
  all(): readonly { path: string; name: string; session: FakeSession; lun: number }[] {
    return this.sessions.flatMap((session) =>
      [...session.devices].map(([lun, name]) => ({ path: byPath(session, lun), name, session, lun })),
    );
  }

  /** Calls of iscsiadm, in short. */
  get calls(): readonly string[] {
    return this.machine.done.filter((line) => line.startsWith("run iscsiadm ")).map((line) => line.slice(13));
  }

  private run(command: readonly string[], input: string): CommandResult {
    if (command[0] === "tee") return this.write(command.at(-1) ?? "", input);
    if (command[0] === "multipath") return ok();
    if (command[0] !== "iscsiadm") return failed(127, `${command[0]}: not found`);
    const option = (name: string): string => command[command.indexOf(name) + 1] ?? "";
    const has = (name: string): boolean => command.includes(name);
    const set = (settings: Map<string, string> | undefined): CommandResult => {
      settings?.set(option("-n"), option("-v"));
      return settings === undefined ? failed(21, "iscsiadm: No records found") : ok();
    };
    const portal = option("-p");
    const key = `${portal} ${option("-T")}`;
    switch (option("-m")) {
      case "iface":
        return this.onInterface(option("-I"), option("-o"), set);
      case "discoverydb":
        if (has("--discover")) return this.discover(portal);
        if (option("-o") === "new") this.discoveries.set(portal, new Map());
        if (option("-o") === "delete") this.discoveries.delete(portal);
        return option("-o") === "update" ? set(this.discoveries.get(portal)) : ok();
      case "node":
        if (has("--login")) return this.logIn(portal, option("-T"));
        if (has("--logout")) return this.logOut(portal, option("-T"));
        if (option("-o") === "update") return set(this.nodes.get(key));
        return this.nodes.delete(key) ? ok() : failed(21, "iscsiadm: No records found");
      default:
        return failed(1, "iscsiadm: what?");
    }
  }

  private onInterface(
    name: string,
    operation: string,
    set: (settings: Map<string, string> | undefined) => CommandResult,
  ): CommandResult {
    if (operation === "show") {
      return ok(
        `# BEGIN RECORD 2.1.8\niface.iscsi_ifacename = ${name}\niface.transport_name = tcp\niface.initiatorname = <empty>\niface.mtu = 0\n# END RECORD\n`,
      );
    }
    if (operation === "new") this.interfaces.set(name, new Map());
    if (operation === "update") return set(this.interfaces.get(name));
    if (operation === "delete") return this.interfaces.delete(name) ? ok() : failed(21, "iscsiadm: No records found");
    return ok();
  }

  private discover(portal: string): CommandResult {
    if (this.unreachable.has(portal)) return failed(8, `iscsiadm: cannot make connection to ${portal}`);
    for (const { iqn } of this.targets.filter((one) => one.portal === portal)) {
      if (!this.nodes.has(`${portal} ${iqn}`)) this.nodes.set(`${portal} ${iqn}`, new Map());
    }
    return ok();
  }

  private logIn(portal: string, iqn: string): CommandResult {
    const target = this.targets.find((one) => one.portal === portal && one.iqn === iqn);
    const record = this.nodes.get(`${portal} ${iqn}`);
    if (target === undefined || record === undefined) return failed(21, "iscsiadm: No records found");
    if (this.unreachable.has(portal)) return failed(8, "iscsiadm: initiator reported error (8 - connection timed out)");
    const isKnown = Object.entries(target.chap ?? {}).every(([key, value]) => record.get(key) === value);
    if (!isKnown)
      return failed(24, "iscsiadm: initiator reported error (24 - iSCSI login failed due to authorization failure)");
    this.sessions.push({ portal, iqn, host: ++this.hosts, devices: new Map() });
    this.show();
    return ok();
  }

  private logOut(portal: string, iqn: string): CommandResult {
    const at = this.sessions.findIndex((one) => one.portal === portal && one.iqn === iqn);
    if (at === -1) return failed(21, "iscsiadm: No matching sessions found");
    this.hide();
    this.sessions.splice(at, 1);
    this.show();
    return ok();
  }

  private write(path: string, text: string): CommandResult {
    this.hide();
    const host = Number(/scsi_host\/host(\d+)\/scan$/.exec(path)?.[1]);
    const session = this.sessions.find((one) => one.host === host);
    const lun = Number(text.split(" ")[2]);
    const target = this.targets.find((one) => one.portal === session?.portal && one.iqn === session.iqn);
    if (session !== undefined && target?.luns.includes(lun) && !session.devices.has(lun)) {
      session.devices.set(lun, `sd${String.fromCharCode("b".charCodeAt(0) + this.letters++)}`);
    }
    const gone = /\/sys\/block\/(\w+)\/device\/delete$/.exec(path)?.[1];
    for (const { session: of, lun: unit, name } of this.all()) if (name === gone) of.devices.delete(unit);
    this.show();
    return ok();
  }

  /** What the kernel and udev have of the sessions. */
  private entries(): readonly (readonly [string, string | undefined])[] {
    return this.sessions.flatMap((session) => {
      const [address = "", port = ""] = session.portal.split(/:(?=\d+$)/);
      const base = `/sys/class/iscsi_host/host${session.host}/device/session${session.host}`;
      const connection = `${base}/connection${session.host}:0/iscsi_connection/connection${session.host}:0`;
      const ip = address.replaceAll(/[[\]]/g, "");
      return [
        [`${base}/iscsi_session/session${session.host}/targetname`, `${session.iqn}\n`],
        ...["", "persistent_"].flatMap((prefix) => [
          [`${connection}/${prefix}address`, `${ip}\n`] as const,
          [`${connection}/${prefix}port`, `${port}\n`] as const,
        ]),
        ...[...session.devices].flatMap(([lun, name]) => [
          [`${base}/target${session.host}:0:0/${session.host}:0:0:${lun}/block/${name}`, undefined] as const,
          [`/sys/block/${name}/device/delete`, undefined] as const,
          [byPath(session, lun), undefined] as const,
        ]),
      ];
    });
  }

  private show(): void {
    for (const [path, text] of this.entries()) {
      this.machine.modes.set(path, 0o644);
      if (text !== undefined) this.machine.files.set(path, text);
    }
  }

  private hide(): void {
    for (const [path] of this.entries()) for (const map of [this.machine.modes, this.machine.files]) map.delete(path);
  }
}

function byPath({ portal, iqn }: FakeSession, lun: number): string {
  return `/dev/disk/by-path/ip-${portal.replaceAll(/[[\]]/g, "")}-iscsi-${iqn}-lun-${lun}`;
}
