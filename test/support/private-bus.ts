import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../integration/support/until.ts";
import { FakeLogind } from "./fake-logind.ts";

/** A bus on which everybody may do everything. */
const configOf = (socket: string): string => `<busconfig>
  <listen>unix:path=${socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
`;

/** A system bus of its own, with a login manager on it. */
export class PrivateBus {
  readonly dir = mkdtempSync(join(tmpdir(), "bus-"));
  private readonly socket = join(this.dir, "bus");
  private daemon: ChildProcess | undefined;

  /** The environment of an agent that uses this bus. */
  get env(): NodeJS.ProcessEnv {
    return { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${this.socket}` };
  }

  /** Starts both; undefined if there is no bus daemon here. */
  async start(): Promise<FakeLogind | undefined> {
    if (spawnSync("dbus-daemon", ["--version"]).status !== 0) return undefined;
    const config = join(this.dir, "bus.conf");
    writeFileSync(config, configOf(this.socket));
    this.daemon = spawn("dbus-daemon", ["--nofork", "--nosyslog", `--config-file=${config}`]);
    await until("the bus listens", () => existsSync(this.socket));
    const logind = await FakeLogind.start(this.socket);
    logind.delayMs = 60_000;
    return logind;
  }

  close(): void {
    this.daemon?.kill();
    rmSync(this.dir, { recursive: true });
  }
}
