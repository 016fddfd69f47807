import { spawn } from "node:child_process";
import { type Abortable, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf } from "../../lib/errors.ts";
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
const MOST_OUTPUT = 1 << 20;

/** Runs the plug-in once. Rejects with `Unauthorized` and what it wrote to stderr. */
export async function runExecPlugin(
  plugin: ExecPlugin,
  config: ClientConfig,
  options: Abortable & { readonly clock: Clock },
): Promise<ExecCredential> {
  const limit = { clock: options.clock, ms: TIME_LIMIT_MS };
  const output = await withScope([options.signal], limit, (signal) =>
    runCommand(plugin, inputOf(plugin, config), signal),
  );
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

function runCommand(plugin: ExecPlugin, info: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const env = { ...process.env, ...plugin.env, KUBERNETES_EXEC_INFO: info };
    const child = spawn(plugin.command, [...plugin.args], { stdio: ["ignore", "pipe", "pipe"], env });
    let stdout = "";
    let stderr = "";
    const onAbort = (): void => void child.kill("SIGKILL");
    signal.addEventListener("abort", onAbort, { once: true });
    const finish = (error: Error | undefined): void => {
      signal.removeEventListener("abort", onAbort);
      if (signal.aborted) reject(signal.reason as Error);
      else if (error !== undefined) reject(error);
      else resolve(stdout);
    };
    child.on("error", (error) => finish(startError(plugin, error)));
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (stdout.length < MOST_OUTPUT) stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-1000);
    });
    child.on("close", (code, ended) => {
      if (code === 0) return finish(undefined);
      const words = stderr.trim() === "" ? "" : `: ${stderr.trim()}`;
      finish(
        new ApiError(
          "Unauthorized",
          `credential plug-in ${plugin.command} ended with ${ended ?? `code ${code}`}${words}`,
        ),
      );
    });
  });
}

function startError(plugin: ExecPlugin, error: Error): ApiError {
  const hint = errnoOf(error) === "ENOENT" && plugin.installHint !== "" ? `; ${plugin.installHint}` : "";
  const message = `credential plug-in ${plugin.command}: ${error.message}${hint}`;
  return new ApiError("Unauthorized", message, { cause: error });
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
