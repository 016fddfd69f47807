/**
 * The go.mod of a small module `name` that builds parts of Kubernetes from its published module, whose own go.mod is
 * `upstream`. That one requires its staging modules as v0.0.0 and replaces them by folders that are not part of it, but
 * each is published under its own name as v0.MINOR.PATCH. `more`: further modules to require, with their versions.
 */
export function kubernetesGoMod({ name, version, upstream, more = [] }) {
  const problem = (text) => new Error(`the go.mod of k8s.io/kubernetes ${version} ${text}`);
  const staging = [...upstream.matchAll(/^\s+(k8s\.io\/\S+) v0\.0\.0$/gm)].map(([, module]) => module);
  if (staging.length === 0) throw problem("names no staging module");
  const goVersion = /^go (\S+)$/m.exec(upstream)?.[1];
  if (goVersion === undefined) throw problem("has no go line");
  const published = version.replace(/^v1\./, "v0.");
  const replaced = staging.map((module) => `replace ${module} => ${module} ${published}`);
  // The language defaults are those of the original build, not those of the machine's newer Go.
  const debug = /^godebug (default=\S+)$/m.exec(upstream)?.[1];
  const lines = [`module kubelet-ts.invalid/${name}`, "", `go ${goVersion}`, ""];
  lines.push(`require k8s.io/kubernetes ${version}`, ...more.map((module) => `require ${module}`));
  if (debug !== undefined) lines.push("", `godebug ${debug}`);
  return `${[...lines, "", ...new Set(replaced)].join("\n")}\n`;
}
