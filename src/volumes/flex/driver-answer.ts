import { exitStatus } from "../../adapters/host/mount-commands.ts";
import type { CommandResult } from "../../adapters/host/volume-host.ts";

/** What a driver can do, as `init` tells; what it does not mention it can, as in Kubernetes. */
export interface FlexCapabilities {
  /** Its volumes are attached to a node, and mounted once there. */
  readonly attach: boolean;
  readonly selinuxRelabel: boolean;
  readonly supportsMetrics: boolean;
  /** The agent gives its volumes to the pod's fsGroup. */
  readonly fsGroup: boolean;
  readonly requiresFSResize: boolean;
}

/** What a driver printed. */
export interface FlexAnswer {
  readonly message: string;
  readonly device: string;
  readonly attached: boolean;
  readonly capabilities: FlexCapabilities;
}

/** A driver does not have a command: the agent does what there is to do itself. */
export class NotSupportedError extends Error {
  override readonly name = "NotSupportedError";

  constructor() {
    super("Not supported");
  }
}

const DEFAULTS: FlexCapabilities = {
  attach: true,
  selinuxRelabel: true,
  supportsMetrics: false,
  fsGroup: true,
  requiresFSResize: true,
};

/** Of what a driver printed that is no answer, as many characters are shown. */
const MOST_SHOWN = 200;

/**
 * Understands how a call of a driver ended. Throws a `NotSupportedError` if the driver does not have the command, and with
 * the words of Kubernetes if it failed. `isSecret` texts are never shown. Pure.
 */
export function parseAnswer(command: string, result: CommandResult, secrets: readonly string[]): FlexAnswer {
  const { code, stdout, stderr } = result;
  const hide = (text: string): string =>
    secrets.filter((secret) => secret !== "").reduce((shown, secret) => shown.replaceAll(secret, "***"), text);
  const fields = parseObject(stdout) ?? parseObject(stderr);
  if (fields === undefined) {
    const said = `${stdout}${stderr}`.trim();
    const what = said === "" ? "nothing" : JSON.stringify(hide(said).slice(0, MOST_SHOWN));
    throw new Error(`${command} command failed: the driver printed ${what} instead of JSON (${exitStatus(code)})`);
  }
  const status = textOf(fields.get("status"));
  const message = hide(textOf(fields.get("message")));
  if (status === "Not supported") throw new NotSupportedError();
  if (status !== "Success") throw new Error(`${command} command failed, status: ${hide(status)}, reason: ${message}`);
  if (code !== 0)
    throw new Error(`${command} command failed: the driver reported success and ended with ${exitStatus(code)}`);
  return {
    message,
    device: textOf(fields.get("device")),
    attached: fields.get("attached") === true,
    capabilities: capabilitiesOf(fields.get("capabilities")),
  };
}

function capabilitiesOf(value: unknown): FlexCapabilities {
  const given = typeof value === "object" && value !== null ? lowered(value) : new Map<string, unknown>();
  const of = (name: keyof FlexCapabilities): boolean => {
    const found = given.get(name.toLowerCase());
    return typeof found === "boolean" ? found : DEFAULTS[name];
  };
  return {
    attach: of("attach"),
    selinuxRelabel: of("selinuxRelabel"),
    supportsMetrics: of("supportsMetrics"),
    fsGroup: of("fsGroup"),
    requiresFSResize: of("requiresFSResize"),
  };
}

/** Names in any case: that is how Go reads them, and drivers were written against it. */
function lowered(value: object): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(value).map(([name, one]) => [name.toLowerCase(), one as unknown]));
}

function parseObject(text: string): ReadonlyMap<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? lowered(value) : undefined;
  } catch {
    return undefined;
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
