import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { messageOf } from "../../lib/errors.ts";
import { type ClientConfig, type Identity, KubeconfigError, type Material } from "./client-config.ts";

/**
 * Reads credentials as they were before kubeconfigs (`--auth-path`, `.kubernetes_auth`): JSON with `CAFile`, `CertFile`,
 * `KeyFile`, `BearerToken` and `Insecure`. Names are case-insensitive, as in Go. Paths are relative to the file.
 */
export async function loadAuthFile(path: string, servers: readonly string[]): Promise<ClientConfig> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new KubeconfigError("Unreadable", `${path}: ${messageOf(error)}`, { cause: error });
  }
  return parseAuthFile(text, path, servers);
}

/** The same from a text; `path` names it in messages. */
export function parseAuthFile(text: string, path: string, servers: readonly string[]): ClientConfig {
  const fields = fieldsOf(text, path);
  const word = (name: string): string => {
    const value = fields.get(name.toLowerCase()) ?? "";
    if (typeof value !== "string") throw problem(path, name, "is not a text");
    return value;
  };
  const file = (name: string): Material | undefined => {
    const value = word(name);
    return value === "" ? undefined : { kind: "file", path: resolve(dirname(path), value) };
  };
  const isInsecure = fields.get("insecure") ?? false;
  if (typeof isInsecure !== "boolean") throw problem(path, "Insecure", "is neither true nor false");
  const [authority, certificate, key] = [file("CAFile"), file("CertFile"), file("KeyFile")];
  const token = word("BearerToken");
  if ((certificate === undefined) !== (key === undefined))
    throw problem(path, certificate === undefined ? "CertFile" : "KeyFile", "is missing although the other is given");
  const isBasic = word("User") !== "" || word("Password") !== "";
  if (isBasic && certificate === undefined && token === "")
    throw problem(path, "User", "is basic authentication, which no API server accepts since 1.19");
  const identity: Identity = {
    ...(certificate !== undefined && key !== undefined && { certificate, key }),
    ...(token !== "" && { token }),
  };
  return {
    servers,
    isInsecure,
    namespace: "default",
    identity,
    // Insecure and an authority contradict each other; Kubernetes does not verify the server then.
    ...(authority !== undefined && !isInsecure && { authority }),
  };
}

function fieldsOf(text: string, path: string): ReadonlyMap<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new KubeconfigError("Invalid", `${path}: not valid JSON: ${messageOf(error)}`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new KubeconfigError("Invalid", `${path}: not a JSON object`);
  return new Map(Object.entries(value).map(([name, field]) => [name.toLowerCase(), field]));
}

function problem(path: string, field: string, what: string): KubeconfigError {
  return new KubeconfigError("Invalid", `${path}: ${field} ${what}`);
}
