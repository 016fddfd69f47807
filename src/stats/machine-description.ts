import type { Hardware } from "../adapters/host/hardware.ts";
import type { MachineInfo } from "../adapters/host/machine.ts";

/** What the machine is, for the views that show it. */
export interface MachineDescription extends MachineInfo, Hardware {
  /** When it was read, in wall-clock milliseconds. */
  readonly at: number;
  readonly swapBytes: number;
  /** Of this agent. */
  readonly version: string;
}
