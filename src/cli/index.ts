export type { CliDeps } from "./command.ts";
export type { AgentLauncher, AgentStart, DownOptions, Progress, RunningAgent, UpOptions } from "./launcher.ts";
export { lazyLauncher } from "./lazy-launcher.ts";
export { type Output, outputOn, type Terminal, wantsColor } from "./output.ts";
export { runCli } from "./run-cli.ts";
