import { type Abortable, TimeLimitError } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { exec } from "../host/exec.ts";
import { HostError } from "../host/host-error.ts";
import type { ClientConfig, ExecPlugin } from "./client-config.ts";
import { ApiError } from "./port.ts";

/** What a plug-in answered. At least one of token and pair is there. */
export interface ExecCredential {
  readonly token: string;
  readonly certificate: string;
  readonly key: string;
  /** Wall-clock milliseconds; undefined: until the server refuses it. */
  readonly expiresAt: number | undefined;
}

/** A plug-in that talks to a cloud may take a while; one that waits for a human never ends. */
const TIME_LIMIT_MS = 60_000;
/** Bytes of an answer; a plug-in that writes more is killed. */
const MOST_OUTPUT = 1 << 20;
/** Of what a plug-in wrote to its standard error, how much is shown. */
const SHOWN_CHARACTERS = 1000;

/** Runs the plug-in once. Rejects with `Unauthorized` and what it wrote to stderr. */
export async function runExecPlugin(
  plugin: ExecPlugin,
  config: ClientConfig,
  options: Abortable & { readonly clock: Clock },
): Promise<ExecCredential> {
  const output = await runCommand(plugin, inputOf(plugin, config), options);
  return parseCredential(plugin, output);
}

/** What the plug-in is told, through its environment. */
function inputOf(plugin: ExecPlugin, config: ClientConfig): string {
  const authority =
    config.authority?.kind === "data" ? Buffer.from(config.authority.pem).toString("base64") : undefined;
  const cluster = {
    server: config.servers[0],
    ...(config.serverName !== undefined && { "tls-server-name": config.serverName }),
    ...(config.isInsecure && { "insecure-skip-tls-verify": true }),
    ...(authority !== undefined && { "certificate-authority-data": authority }),
    ...(config.proxyUrl !== undefined && { "proxy-url": config.proxyUrl }),
  };
  const spec = { interactive: false, ...(plugin.provideClusterInfo && { cluster }) };
  return JSON.stringify({ apiVersion: plugin.apiVersion, kind: "ExecCredential", spec });
}

async function runCommand(
  plugin: ExecPlugin,
  info: string,
  { clock, signal }: Abortable & { readonly clock: Clock },
): Promise<string> {
  const options = {
    signal,
    timeoutMs: TIME_LIMIT_MS,
    maxOutputBytes: MOST_OUTPUT,
    env: { ...plugin.env, KUBERNETES_EXEC_INFO: info },
    // Whatever it has started ends with it.
    isContained: true,
  };
  const failed = (why: string, cause?: unknown): ApiError =>
    new ApiError("Unauthorized", `credential plug-in ${plugin.command}${why}`, { cause });
  const { code, stdout, stderr, isCut } = await exec(clock, [plugin.command, ...plugin.args], options).catch(
    (error: unknown) => {
      if (signal.aborted) throw error;
      if (error instanceof TimeLimitError) throw failed(` did not end within ${TIME_LIMIT_MS / 1000} s`, error);
      const isMissing = error instanceof HostError && error.code === "NotFound";
      const hint = isMissing && plugin.installHint !== "" ? `; ${plugin.installHint}` : "";
      throw failed(`: ${messageOf(error instanceof HostError ? error.cause : error)}${hint}`, error);
    },
  );
  if (isCut === true) throw failed(` wrote more than ${MOST_OUTPUT} bytes`);
  if (code === 0) return stdout;
  const words = stderr.trim() === "" ? "" : `: ${stderr.trim().slice(-SHOWN_CHARACTERS)}`;
  throw failed(` ended with ${code === undefined ? "a signal" : `code ${code}`}${words}`);
}

function parseCredential(plugin: ExecPlugin, output: string): ExecCredential {
  const fail = (why: string): never => {
    throw new ApiError("Unauthorized", `credential plug-in ${plugin.command} ${why}`);
  };
  let parsed: unknown;
  try {
    parsed = JSON.parse(output);
  } catch {
    return fail("printed no JSON");
  }
  // Every field is checked before use.
  const credential = (parsed ?? {}) as { kind?: unknown; apiVersion?: unknown; status?: Record<string, unknown> };
  if (credential.kind !== "ExecCredential") return fail("printed no ExecCredential");
  if (credential.apiVersion !== plugin.apiVersion)
    return fail(`answered in ${String(credential.apiVersion)}, not in ${plugin.apiVersion}`);
  const text = (name: string): string => {
    const value = credential.status?.[name];
    return typeof value === "string" ? value : "";
  };
  const token = text("token");
  const certificate = text("clientCertificateData");
  const key = text("clientKeyData");
  if ((certificate === "") !== (key === "")) return fail("gave only one half of a certificate and its key");
  if (token === "" && certificate === "") return fail("gave neither a token nor a certificate");
  const expires = text("expirationTimestamp");
  const expiresAt = expires === "" ? undefined : Date.parse(expires);
  if (expiresAt !== undefined && Number.isNaN(expiresAt)) return fail("gave an expirationTimestamp that is no time");
  return { token, certificate, key, expiresAt };
}
