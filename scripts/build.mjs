// Bundles the agent: src/main.ts → dist/kubelet.cjs (with a V8 code cache), src/entry.ts → dist/entry.cjs, workers; and
// the page of port 4194: web/ → dist/page/.
// CommonJS because an ESM bundle of grpc-js crashes; koffi stays outside because it finds its binary by path.
import "./require-node.mjs";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { say } from "./progress.mjs";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");

/** The release whose behaviour we follow; ours comes from package.json. */
const KUBERNETES_VERSION = "1.36.3";

/** Source → file in dist/. A worker thread's entry is a line here; a line whose source does not exist is left out. */
const BUNDLES = [
  { from: "src/main.ts", to: "kubelet.cjs" },
  { from: "src/lib/yaml-worker.ts", to: "yaml-worker.cjs" },
  { from: "src/adapters/host/group-child.ts", to: "group-child.cjs" },
];

/** Characters of a line of the bundles, where a statement allows it. */
const LINE_LIMIT = 120;

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const epoch = process.env.SOURCE_DATE_EPOCH;
const buildDate = new Date(epoch === undefined ? Date.now() : Number(epoch) * 1000).toISOString();

async function bundle(from, to, define = {}) {
  const result = await build({
    entryPoints: [join(root, from)],
    outfile: join(dist, to),
    write: false,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    // koffi finds its binary by path; grpc-js loads the other only for services of its own that the agent does not serve.
    external: ["koffi", "@grpc/proto-loader"],
    // `import()` becomes a lazy `require`: a vm.Script has no loader for the real one.
    supported: { "dynamic-import": false },
    // Names stay as written and lines are short, so that a stack can be read without the map; see docs/decisions/001. The
    // text stays in memory as long as the agent runs, so blanks are left out.
    minifySyntax: true,
    minifyWhitespace: true,
    lineLimit: LINE_LIMIT,
    sourcemap: "external",
    sourcesContent: false,
    legalComments: "none",
    // CommonJS has no import.meta: give it the bundle's own place, as the sources expect.
    banner: { js: 'const __bundleUrl = require("node:url").pathToFileURL(__filename).href;' },
    define: {
      "import.meta.url": "__bundleUrl",
      "import.meta.dirname": "__dirname",
      "import.meta.filename": "__filename",
      __AGENT_VERSION__: JSON.stringify(version),
      __KUBERNETES_VERSION__: JSON.stringify(KUBERNETES_VERSION),
      __BUILD_DATE__: JSON.stringify(buildDate),
      ...define,
    },
    absWorkingDir: root,
    logLevel: "warning",
  });
  for (const file of result.outputFiles) replace(file.path, file.contents);
  return result.outputFiles.find((file) => file.path.endsWith(".cjs")).contents;
}

/** Written beside and renamed: an agent that starts right now reads the old file or the new one, never half of one. */
function replace(path, contents) {
  writeFileSync(`${path}.new`, contents);
  renameSync(`${path}.new`, path);
}

/** The V8 flags of bin/kubelet: a cache made with others is refused. */
function launchFlags() {
  return readFileSync(join(root, "bin/kubelet"), "utf8").match(/--max-[a-z-]+=\d+/g) ?? [];
}

/**
 * Runs the bundle for what touches nothing (it checks a configuration that sets every field, and ends an agent that is
 * not there, which loads all parts of one) and keeps what V8 compiled meanwhile, so that the real start neither parses
 * nor compiles what every start needs. Without a cache the agent only starts more slowly.
 */
function makeCodeCache(id) {
  const cache = join(dist, `kubelet-${id}.cache`);
  const sample = join(dist, "sample.yaml");
  const defaults = spawnSync(process.execPath, [join(dist, "kubelet.cjs"), "config", "defaults"], { timeout: 20_000 });
  writeFileSync(sample, defaults.stdout);
  const runs = [
    ["config", "validate", sample],
    ["down", "--state-dir", join(dist, "none")],
  ];
  const maker = `
    const { readFileSync, writeFileSync } = require("node:fs");
    const { wrap, createRequire } = require("node:module");
    const filename = ${JSON.stringify(join(dist, "kubelet.cjs"))};
    const script = new (require("node:vm").Script)(wrap(readFileSync(filename, "latin1")), { filename });
    const keep = () => writeFileSync(${JSON.stringify(`${cache}.new`)}, script.createCachedData());
    const runs = ${JSON.stringify(runs)};
    const end = process.exit;
    process.exit = (code) => {
      if (code !== 0 || runs.length === 0) end(code);
      else next();
    };
    const next = () => {
      process.argv = [process.execPath, filename, ...runs.shift()];
      const module_ = { exports: {} };
      script.runInThisContext()(module_.exports, createRequire(filename), module_, filename, ${JSON.stringify(dist)});
    };
    process.on("exit", keep);
    keep();
    next();
  `;
  const args = [...launchFlags(), "-e", maker];
  const made = spawnSync(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"], timeout: 20_000 });
  rmSync(sample);
  if (existsSync(`${cache}.new`)) renameSync(`${cache}.new`, cache);
  if (made.status !== 0) say(`the code cache is a cold one: ${String(made.stderr).trim().split("\n").at(-1) ?? ""}`);
  return cache;
}

/** Bundles the page: names with a hash of their content, so that browsers keep them, and the HTML that names them. */
async function bundlePage() {
  const from = join(root, "web");
  const to = join(dist, "page");
  const result = await build({
    entryPoints: [join(from, "main.tsx"), join(from, "icon.svg")],
    outdir: to,
    write: false,
    bundle: true,
    splitting: true,
    platform: "browser",
    format: "esm",
    target: ["chrome123", "firefox120", "safari17.5"],
    loader: { ".svg": "copy" },
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    legalComments: "none",
    define: { "process.env.NODE_ENV": '"production"' },
    absWorkingDir: root,
    logLevel: "warning",
  });
  const files = new Map(result.outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]));
  const named = (pattern) => [...files.keys()].find((name) => pattern.test(name));
  const chunks = [...files.keys()].filter((name) => name.startsWith("chunk-"));
  const preloads = chunks.map((name) => `<link rel="modulepreload" href="/page/assets/${name}" />`);
  const html = readFileSync(join(from, "index.html"), "utf8")
    .replace("%PRELOADS%", preloads.join("\n    "))
    .replace("%SCRIPT%", named(/^main-.*\.js$/))
    .replace("%STYLE%", named(/^main-.*\.css$/))
    .replace("%ICON%", named(/^icon-.*\.svg$/));
  mkdirSync(to, { recursive: true });
  // The HTML last: it never names what is not there yet.
  for (const [name, contents] of [...files, ["index.html", Buffer.from(html)]]) {
    replace(join(to, name), contents);
    replace(join(to, `${name}.gz`), gzipSync(contents, { level: 9 }));
  }
  const kept = new Set(["index.html", ...files.keys()].flatMap((name) => [name, `${name}.gz`]));
  for (const name of readdirSync(to)) if (!kept.has(name)) rmSync(join(to, name));
  return [...files.values()].reduce((sum, { length }) => sum + length, 0);
}

mkdirSync(dist, { recursive: true });
let code;
for (const { from, to } of BUNDLES) {
  if (!existsSync(join(root, from))) continue;
  const contents = await bundle(from, to);
  if (to === "kubelet.cjs") code = contents;
}
const pageBytes = await bundlePage();
const id = createHash("sha256").update(code).update(process.version).digest("hex").slice(0, 16);
const cache = makeCodeCache(id);
await bundle("src/entry.ts", "entry.cjs", { __BUILD_ID__: JSON.stringify(id) });
for (const name of readdirSync(dist)) {
  if (/^kubelet-[0-9a-f]+\.cache(\.new)?$/.test(name) && name !== `kubelet-${id}.cache`) rmSync(join(dist, name));
}
const kib = (path) => (existsSync(path) ? `${Math.round(statSync(path).size / 1024)} KiB` : "none");
say(
  `dist/kubelet.cjs ${kib(join(dist, "kubelet.cjs"))}, code cache ${kib(cache)}, page ${Math.round(pageBytes / 1024)} KiB`,
);
