import type { AgentOptions } from "../../config/index.ts";
import { parseQuantity, wholeValue } from "../../model/quantity.ts";
import type { RotationOptions } from "./log-rotator.ts";

/** The settings that rotation follows while the agent runs. */
export const ROTATION_SETTINGS = [
  "containerLogMaxSize",
  "containerLogMaxFiles",
  "containerLogMaxWorkers",
  "containerLogMonitorInterval",
] as const;

/** Returns the limits of container logs from the agent's settings. */
export function rotationOptions(options: Pick<AgentOptions, (typeof ROTATION_SETTINGS)[number]>): RotationOptions {
  return {
    maxBytes: wholeValue(parseQuantity(options.containerLogMaxSize)),
    maxFiles: options.containerLogMaxFiles,
    workers: options.containerLogMaxWorkers,
    intervalMs: options.containerLogMonitorInterval,
  };
}
