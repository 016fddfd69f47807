import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { type ClientConfig, KubeconfigError } from "./client-config.ts";
import { FieldReader } from "./field-reader.ts";
import { readIdentity } from "./kubeconfig-user.ts";
import { readMaterial } from "./material.ts";

export interface KubeconfigOptions extends Abortable {
  readonly clock: Clock;
  /** Instead of the file's `current-context`. */
  readonly context?: string;
  /** Instead of the cluster's `server`: several servers of one cluster. */
  readonly servers?: readonly string[];
}

/** Reads a kubeconfig file. Certificates and tokens that it names as files are read later, by `Credentials`. */
export async function loadKubeconfig(path: string, options: KubeconfigOptions): Promise<ClientConfig> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new KubeconfigError("Unreadable", `${path}: ${messageOf(error)}`, { cause: error });
  }
  return parseKubeconfig(text, path, options);
}

/** The same from a text; `path` names it in messages and is what relative paths in it are relative to. */
export async function parseKubeconfig(text: string, path: string, options: KubeconfigOptions): Promise<ClientConfig> {
  const root = new FieldReader(await parseText(text, path, options), { file: path, path: "" });
  const kind = root.text("kind");
  if (kind !== "" && kind !== "Config") throw root.problem("kind", `is ${JSON.stringify(kind)}, not "Config"`);
  const contextName = options.context ?? root.text("current-context");
  // A file without contexts but with one cluster and one user leaves no doubt; kubectl wants a context even then.
  const context = contextName === "" ? undefined : root.named("contexts", contextName, "context");
  const cluster = pick(root, "clusters", context);
  const user = pick(root, "users", context);
  const config: ClientConfig = {
    ...readCluster(cluster, options.servers),
    namespace: context?.text("namespace") || "default",
    identity: user === undefined ? {} : readIdentity(user, (relative) => resolve(dirname(path), relative)),
  };
  const isPlain = config.servers.some((server) => server.startsWith("http:"));
  if (isPlain && config.identity.certificate !== undefined)
    throw cluster.problem("server", "begins with http:// but the user has a client certificate; use https://");
  return config;
}

async function parseText(text: string, path: string, options: KubeconfigOptions): Promise<unknown> {
  try {
    // YAML is only needed at start.
    const { parseDocuments } = await import("../../lib/yaml.ts");
    const { documents } = await parseDocuments(text, options);
    const [first, second] = documents;
    if (first === undefined) throw new Error("file is empty");
    if (second !== undefined) throw new Error("file contains more than one document");
    return first.value;
  } catch (error) {
    options.signal.throwIfAborted();
    throw new KubeconfigError("Invalid", `${path}: ${messageOf(error)}`, { cause: error });
  }
}

const SINGULAR = { clusters: "cluster", users: "user" } as const;

function pick(root: FieldReader, list: "clusters", context: FieldReader | undefined): FieldReader;
function pick(root: FieldReader, list: "users", context: FieldReader | undefined): FieldReader | undefined;
function pick(
  root: FieldReader,
  list: "clusters" | "users",
  context: FieldReader | undefined,
): FieldReader | undefined {
  const inner = SINGULAR[list];
  if (context !== undefined) {
    const name = context.text(inner);
    if (name !== "") return root.named(list, name, inner);
    if (list === "users") return undefined;
    throw context.problem(inner, "is missing: which cluster?");
  }
  const all = root.list(list);
  if (all.length === 1) return all[0]?.object(inner);
  if (all.length === 0 && list === "users") return undefined;
  throw root.problem("current-context", `is missing, and there are ${all.length} ${list}`);
}

function readCluster(
  cluster: FieldReader,
  given: readonly string[] | undefined,
): Omit<ClientConfig, "namespace" | "identity"> {
  const servers = given !== undefined && given.length > 0 ? given : [cluster.text("server")];
  for (const server of servers) checkServer(cluster, server);
  const baseDir = dirname(cluster.place.file);
  const authority = readMaterial(cluster, "certificate-authority", (relative) => resolve(baseDir, relative));
  const isInsecure = cluster.flag("insecure-skip-tls-verify");
  if (isInsecure && authority !== undefined)
    throw cluster.problem("insecure-skip-tls-verify", "is true although a certificate-authority is given; drop one");
  const proxyUrl = cluster.text("proxy-url");
  if (proxyUrl !== "" && !/^(https?|socks5h?):\/\/[^/]/.test(proxyUrl))
    throw cluster.problem("proxy-url", "must begin with http://, https:// or socks5://");
  const serverName = cluster.text("tls-server-name");
  return {
    servers,
    isInsecure,
    ...(authority !== undefined && { authority }),
    ...(serverName !== "" && { serverName }),
    ...(proxyUrl !== "" && { proxyUrl }),
  };
}

function checkServer(cluster: FieldReader, server: string): void {
  if (server === "") throw cluster.problem("server", "is missing: the address of the API server, https://HOST:PORT");
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw cluster.problem("server", `${JSON.stringify(server)} is no URL like https://HOST:PORT`);
  if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "")
    throw cluster.problem("server", "may hold only https://HOST:PORT and a path");
}
