import type { ExecPlugin, Identity, Impersonation } from "./client-config.ts";
import type { FieldReader } from "./field-reader.ts";
import { readMaterial } from "./material.ts";

const EXEC_VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"] as const;

/** The identity of a `user` entry. `absolute` makes a path of the file relative to the file's folder. */
export function readIdentity(user: FieldReader, absolute: (path: string) => string): Identity {
  refuseOldWays(user);
  const certificate = readMaterial(user, "client-certificate", absolute);
  const key = readMaterial(user, "client-key", absolute);
  if (certificate !== undefined && key === undefined)
    throw user.problem("client-key", "is missing although there is a client-certificate");
  if (key !== undefined && certificate === undefined)
    throw user.problem("client-certificate", "is missing although there is a client-key");
  const token = user.text("token");
  const tokenFile = user.text("tokenFile");
  const exec = user.has("exec") ? readExec(user.object("exec"), absolute) : undefined;
  if (exec !== undefined && (token !== "" || tokenFile !== ""))
    throw user.problem("exec", "stands beside a token; only one of them can be meant");
  const impersonate = readImpersonation(user);
  return {
    ...(certificate !== undefined && { certificate, key }),
    ...(token !== "" && { token }),
    ...(tokenFile !== "" && { tokenFile: absolute(tokenFile) }),
    ...(exec !== undefined && { exec }),
    ...(impersonate !== undefined && { impersonate }),
  };
}

function refuseOldWays(user: FieldReader): void {
  for (const name of ["username", "password"]) {
    if (user.text(name) !== "")
      throw user.problem(
        name,
        "is basic authentication, which no API server accepts since 1.19; use a certificate or a token",
      );
  }
  if (user.has("auth-provider"))
    throw user.problem("auth-provider", "was removed from Kubernetes in 1.26; use an exec plug-in");
}

function readExec(exec: FieldReader, absolute: (path: string) => string): ExecPlugin {
  const apiVersion = EXEC_VERSIONS.find((known) => known === exec.text("apiVersion"));
  if (apiVersion === undefined) throw exec.problem("apiVersion", `must be ${EXEC_VERSIONS.join(" or ")}`);
  const command = exec.text("command");
  if (command === "") throw exec.problem("command", "is missing");
  if (exec.text("interactiveMode") === "Always")
    throw exec.problem("interactiveMode", "is Always, but an agent has no terminal to ask on");
  const env = Object.fromEntries(exec.list("env").map((entry) => [entry.text("name"), entry.text("value")]));
  return {
    apiVersion,
    // A name is looked for in PATH, a path is relative to the file, as in kubectl.
    command: command.includes("/") ? absolute(command) : command,
    args: exec.texts("args"),
    env,
    installHint: exec.text("installHint"),
    provideClusterInfo: exec.flag("provideClusterInfo"),
  };
}

function readImpersonation(user: FieldReader): Impersonation | undefined {
  const name = user.text("as");
  const extra = user.object("as-user-extra");
  const impersonation = {
    user: name,
    uid: user.text("as-uid"),
    groups: user.texts("as-groups"),
    extra: Object.fromEntries(extra.names.map((key) => [key, extra.texts(key)])),
  };
  if (name !== "") return impersonation;
  if (impersonation.uid !== "" || impersonation.groups.length > 0 || extra.names.length > 0)
    throw user.problem("as", "is missing although other parts of an impersonation are there");
  return undefined;
}
