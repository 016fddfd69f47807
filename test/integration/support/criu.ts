import { spawnSync } from "node:child_process";

/** Why no checkpoint of a container can be made here, or false when one can. */
export function whyNoCheckpoints(): string | false {
  const { error, status, stdout, stderr } = spawnSync("criu", ["check"], { encoding: "utf8" });
  if (error !== undefined) return "there is no criu";
  return status === 0 ? false : `criu does not work on this kernel: ${`${stdout}${stderr}`.trim().split("\n")[0]}`;
}
