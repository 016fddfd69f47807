import type { Command } from "./command.ts";
import { config } from "./config-command.ts";
import { down } from "./down.ts";
import { events } from "./events.ts";
import { exec } from "./exec.ts";
import { explain } from "./explain.ts";
import { images } from "./images.ts";
import { kubeconfig } from "./kubeconfig.ts";
import { logs } from "./logs.ts";
import { open } from "./open.ts";
import { portForward } from "./port-forward.ts";
import { ps } from "./ps.ts";
import { top } from "./top.ts";
import { topology } from "./topology.ts";
import { up } from "./up.ts";
import { version } from "./version.ts";

/** Every sub-command, in the order of `--help`. To add one, add a file and a line here. */
export const commands: readonly Command[] = [
  ...[up, down, ps, logs, exec, portForward, explain, events, top, topology, open],
  ...[images, kubeconfig, config, version],
];
