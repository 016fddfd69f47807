import type { Abortable } from "../../../lib/abort.ts";
import { messageOf } from "../../../lib/errors.ts";
import type { VolumeHost } from "../../kind.ts";

/** Time limits in milliseconds. iscsid gives a login up after two minutes itself, with a reason. */
const CALL_MS = 30_000;
const LOGIN_MS = 150_000;

/** Exit codes of iscsiadm(8). */
const SESSION_NOT_FOUND = 2;
const SESSION_EXISTS = 15;
const NOTHING_FOUND = 21;

export interface IscsiCall extends Abortable {
  readonly host: Pick<VolumeHost, "run">;
}

/** A call of iscsiadm that failed; its message is what it printed, never what it was given: that may be a secret. */
export class IscsiError extends Error {
  override readonly name = "IscsiError";

  constructor(
    message: string,
    readonly code: number | undefined,
  ) {
    super(message);
  }
}

/** Calls iscsiadm; resolves to what it printed. `secret`: an argument that must never be shown, also if it repeats it. */
export async function iscsiadm(
  args: readonly string[],
  { host, signal, isLogin = false, secret = "" }: IscsiCall & { readonly isLogin?: boolean; readonly secret?: string },
): Promise<string> {
  try {
    const timeoutMs = isLogin ? LOGIN_MS : CALL_MS;
    const { code, stdout, stderr } = await host.run(["iscsiadm", ...args], { signal, timeoutMs });
    if (code === 0) return stdout;
    const said = `${stdout}${stderr}`.trim();
    throw new IscsiError(`${secret === "" ? said : said.replaceAll(secret, "***")} (exit status ${code})`, code);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof IscsiError) throw error;
    const isMissing = error instanceof Error && "code" in error && error.code === "NotFound";
    const advice = isMissing ? "iscsiadm is not installed on the node: install open-iscsi" : messageOf(error);
    throw new IscsiError(advice, undefined);
  }
}

/** True if there was nothing to do. */
export function isNothing(error: unknown): boolean {
  return error instanceof IscsiError && [SESSION_NOT_FOUND, NOTHING_FOUND].includes(error.code ?? 0);
}

/** True if a session uses what was to be created. */
export function isInUse(error: unknown): boolean {
  return error instanceof IscsiError && error.code === SESSION_EXISTS;
}
