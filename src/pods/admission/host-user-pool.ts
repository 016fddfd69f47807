import { findInPath } from "../../adapters/embedded/daemon.ts";
import { ConfigurationError } from "../../config/index.ts";
import { messageOf } from "../../lib/errors.ts";
import { findUserPool, type UserPool } from "./user-pool.ts";

/** Timeout of `getsubids` in milliseconds. */
const PROGRAM_MS = 2000;

export interface UserPoolHost {
  readSmall(path: string): string | undefined;
  exec(
    file: string,
    args: readonly string[],
    options: { readonly timeoutMs: number },
  ): Promise<{ readonly code: number | undefined; readonly stdout: string; readonly stderr: string }>;
}

/** Ids that the administrator set aside for user namespaces. Rejects if they do not fit the settings. */
export async function hostUserPool(
  host: UserPoolHost,
  options: { readonly idsPerPod: number; readonly maxPods: number },
): Promise<UserPool | undefined> {
  const run = async (program: string, args: readonly string[]): Promise<string | undefined> => {
    const path = findInPath(program, process.env["PATH"]);
    if (path === undefined) return undefined;
    const { code, stdout, stderr } = await host.exec(path, args, { timeoutMs: PROGRAM_MS });
    if (code !== 0) throw new Error(`${[program, ...args].join(" ")}: ${stderr.trim() || `exit code ${code}`}`);
    return stdout;
  };
  try {
    return await findUserPool({ users: host.readSmall("/etc/passwd") ?? "", run }, options);
  } catch (error) {
    throw new ConfigurationError("Impossible", `user namespaces: ${messageOf(error)}`);
  }
}
