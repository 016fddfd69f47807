import { VolumeMachine } from "../support/volume-machine.ts";
import { volumeHostContract } from "./volume-host-suite.ts";

volumeHostContract("in memory", async () => {
  const host = new VolumeMachine();
  await host.makeDir("/base", 0o755);
  return {
    host,
    base: "/base",
    read: (directory) => host.texts(directory),
    put: (path) => host.makeFile(path, 0o644),
    exists: (path) => host.modes.has(path),
    close: () => Promise.resolve(),
  };
});
