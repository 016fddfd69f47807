import type { CommandResult } from "../../src/adapters/host/volume-host.ts";
import type { FlexCommand } from "../../src/volumes/flex/driver.ts";
import type { VolumeMachine } from "./volume-machine.ts";

type Answer = Readonly<Record<string, unknown>>;

/** A flexVolume driver on a machine in memory: it mounts what it is asked to, and does nothing twice. */
export class FakeFlex {
  readonly calls: string[][] = [];
  capabilities: Readonly<Record<string, boolean>> = {};
  /** Commands that it does not have. */
  readonly missing = new Set<FlexCommand>();
  /** What the next calls of a command print and end with, or are rejected with, instead. */
  readonly faults = new Map<string, CommandResult | Error>();
  /** The device that it attaches. */
  device = "/dev/flex0";

  constructor(private readonly machine: VolumeMachine) {
    machine.onRun = (command) => this.run(command);
  }

  /** Commands that were called, without `init`. */
  get commands(): readonly string[] {
    return this.calls.map(([command = ""]) => command).filter((command) => command !== "init");
  }

  /** The arguments of the last call of a command. */
  last(command: FlexCommand): readonly string[] {
    return this.calls.findLast(([name]) => name === command)?.slice(1) ?? [];
  }

  private async run([, command = "", ...args]: readonly string[]): Promise<CommandResult> {
    this.calls.push([command, ...args]);
    const fault = this.faults.get(command);
    if (fault instanceof Error) throw fault;
    if (fault !== undefined) return fault;
    // reason: any other word is answered like one that it does not have
    const isMissing = this.missing.has(command as FlexCommand);
    const answer = isMissing ? { status: "Not supported" } : { status: "Success", ...(await this.work(command, args)) };
    return { code: isMissing ? 1 : 0, stdout: JSON.stringify(answer), stderr: "" };
  }

  private async work(command: string, args: readonly string[]): Promise<Answer> {
    const [path = ""] = args;
    switch (command) {
      case "init":
        return { capabilities: this.capabilities };
      case "attach":
      case "waitforattach":
        return { device: this.device };
      case "mountdevice":
        return this.mount(path, this.device);
      case "mount":
        return this.mount(path, "flex");
      case "unmount":
      case "unmountdevice":
        this.machine.mounts.delete(path);
        return {};
      default:
        return {};
    }
  }

  private mount(path: string, source: string): Answer {
    if (!this.machine.mounts.has(path)) this.machine.mounts.set(path, { type: "flex", source });
    return {};
  }
}
