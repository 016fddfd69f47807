// Set by scripts/build.mjs; missing when the source runs unbundled, as in tests.
declare const __AGENT_VERSION__: string | undefined;
declare const __KUBERNETES_VERSION__: string | undefined;
declare const __BUILD_DATE__: string | undefined;

/** The version of kubelet-ts itself. */
export const agentVersion = typeof __AGENT_VERSION__ === "string" ? __AGENT_VERSION__ : "0.0.0-dev";

/** The Kubernetes release whose behaviour the agent follows, with our own version behind the `+`. */
export const gitVersion = `v${typeof __KUBERNETES_VERSION__ === "string" ? __KUBERNETES_VERSION__ : "1.36.3"}+kubelet-ts.${agentVersion}`;

/** The version to report for `--version=v1.36.3-mine`; any other value keeps the built-in one. */
export function reportedVersion(flag: string): string {
  return flag.startsWith("v") ? flag : gitVersion;
}

/** What Kubernetes calls version info: `kubelet --version=raw`, and what a node reports about itself. */
export function versionInfo(): Readonly<Record<string, string>> {
  const [major = "", minor = ""] = gitVersion.slice(1).split(".");
  return {
    major,
    minor,
    gitVersion,
    buildDate: typeof __BUILD_DATE__ === "string" ? __BUILD_DATE__ : "",
    nodeVersion: process.version,
    platform: `${process.platform}/${process.arch === "x64" ? "amd64" : process.arch}`,
  };
}
