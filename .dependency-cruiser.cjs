// The layer table of docs/architecture.md as a check that fails. Run by scripts/lint.mjs.

const LAYERS = ["lib", "model", "config", "adapters"];
const FEATURES = [
  ...["sources", "pods", "images", "volumes", "probes", "resources", "eviction", "gc", "logs", "stats", "node"],
  ...["events", "server", "localapi", "dashboard", "status", "topology"],
  ...["plugins", "claims", "devices", "apiserver", "controllers", "services"],
];
const features = `^src/(${FEATURES.join("|")})/`;
const root = "^src/(agent/|main\\.ts$|cli/)";
const tests = "\\.test\\.ts$";

/** Each layer imports itself and the ones before it. */
const layerRules = LAYERS.map((layer, index) => ({
  name: `layer-${layer}`,
  comment: `src/${layer} may import only ${LAYERS.slice(0, index + 1).join(", ")}`,
  severity: "error",
  from: { path: `^src/${layer}/`, pathNot: tests },
  to: { path: "^src/", pathNot: LAYERS.slice(0, index + 1).map((allowed) => `^src/${allowed}/`) },
}));

module.exports = {
  forbidden: [
    ...layerRules,
    {
      name: "layer-feature",
      comment: "a feature imports only the layers above it: what it needs from another it says as an interface",
      severity: "error",
      from: {
        path: "^src/([^/]+)/",
        pathNot: [tests, ...LAYERS.map((layer) => `^src/${layer}/`), "^src/(agent|cli)/"],
      },
      to: { path: "^src/", pathNot: ["^src/$1/", ...LAYERS.map((layer) => `^src/${layer}/`)] },
    },
    {
      name: "feature-face",
      comment: "from outside, only index.ts of a feature is imported",
      severity: "error",
      from: { path: root, pathNot: tests },
      to: { path: features, pathNot: "^src/[^/]+/index\\.ts$" },
    },
    {
      name: "runtime-port",
      comment: "runtimes are used through their port: only connect-runtime.ts, and the embedded containerd, name one",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/adapters/(cri|embedded)/", "^src/adapters/connect-runtime\\.ts$", tests] },
      to: { path: "^src/adapters/cri/" },
    },
    {
      name: "agent-below-cli",
      comment: "the commands start agents through the launcher of main.ts, and load none of their parts",
      severity: "error",
      from: { path: "^src/cli/", pathNot: tests },
      to: { path: "^src/agent/" },
    },
    {
      name: "feature-unknown",
      comment: "a new folder in src/ joins the table: add it here and in docs/architecture.md",
      severity: "error",
      from: {
        path: "^src/",
        pathNot: [features, root, "^src/entry\\.ts$", ...LAYERS.map((layer) => `^src/${layer}/`)],
      },
      to: {},
    },
    {
      name: "outside-world",
      comment: "only lib/ and adapters/ touch files, processes and the network",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/(lib|adapters)/", "^src/entry\\.ts$", tests] },
      to: {
        path: "^(node:)?(fs|fs/promises|child_process|cluster|net|tls|https?|http2|dgram|dns|dns/promises)$|(^|/)koffi(/|$)",
      },
    },
    {
      name: "entry-is-tiny",
      comment: "src/entry.ts answers --version without loading anything else of ours",
      severity: "error",
      from: { path: "^src/entry\\.ts$" },
      to: { path: "^src/|node_modules", pathNot: "^src/lib/version\\.ts$" },
    },
    {
      name: "not-to-test",
      comment: "the product never imports its tests, benchmarks or scripts",
      severity: "error",
      from: { path: "^src/", pathNot: tests },
      to: { path: ["^(test|bench|scripts)/", tests] },
    },
    {
      name: "not-to-dev-dependency",
      comment: "what the product imports at run time is a dependency in package.json",
      severity: "error",
      from: { path: "^src/", pathNot: tests },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["type-only"] },
    },
    {
      name: "no-cycle",
      comment: "no file needs itself",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "no-type-knot",
      comment: "no file needs itself for its types either: the type goes into a file of its own",
      severity: "error",
      // Until their parts no longer take types from the whole.
      from: { pathNot: "^src/(agent|server)/" },
      to: { circular: true },
    },
    { name: "not-unresolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    parser: "swc",
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    exclude: { path: "(^|/)dist/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      extensions: [".ts", ".mjs", ".cjs", ".js", ".json"],
      conditionNames: ["import", "require", "node", "default"],
    },
  },
};
