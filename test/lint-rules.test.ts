import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { before, describe, test } from "node:test";

// Each rule is shown a file that breaks it, in a small project of its own; a rule that finds nothing is no rule.

const root = join(import.meta.dirname, "..");

interface Sample {
  readonly file: string;
  readonly code: string;
  /** The rule that must speak up, or undefined for a file that is fine. */
  readonly rule: string | undefined;
}

const OXLINT: readonly Sample[] = [
  { file: "pods/ok.ts", rule: undefined, code: "export const fine = (a: number, b: number): number => a + b;" },
  {
    file: "lib/ok.ts",
    rule: undefined,
    code: "export const later = (fn: () => void): unknown => setTimeout(fn, Date.now());",
  },
  { file: "pods/default.ts", rule: "import(no-default-export)", code: "export default 1;" },
  { file: "pods/any.ts", rule: "typescript(no-explicit-any)", code: "export const x = (a: any): unknown => a;" },
  {
    file: "pods/bang.ts",
    rule: "typescript(no-non-null-assertion)",
    code: "export const x = (a?: string): string => a!;",
  },
  {
    file: "pods/four.ts",
    rule: "eslint(max-params)",
    code: "export const x = (a: 1, b: 1, c: 1, d: 1) => [a, b, c, d];",
  },
  { file: "pods/now.ts", rule: "eslint(no-restricted-properties)", code: "export const x = Date.now();" },
  { file: "pods/timer.ts", rule: "eslint(no-restricted-globals)", code: "export const x = setTimeout(() => 1, 1);" },
  {
    file: "pods/interval.ts",
    rule: "eslint(no-restricted-globals)",
    code: "export const x = setInterval(() => 1, 1);",
  },
  { file: "pods/fetch.ts", rule: "eslint(no-restricted-globals)", code: 'export const x = fetch("http://a");' },
  { file: "pods/console.ts", rule: "eslint(no-restricted-globals)", code: 'console.log("x");\nexport {};' },
  { file: "pods/out.ts", rule: "eslint(no-restricted-properties)", code: 'process.stdout.write("x");\nexport {};' },
  {
    file: "pods/sleep.ts",
    rule: "eslint(no-restricted-imports)",
    code: 'export { setTimeout } from "node:timers/promises";',
  },
  { file: "lib/any.ts", rule: "eslint(no-restricted-properties)", code: "export const x = AbortSignal.any([]);" },
  {
    file: "lib/timeout.ts",
    rule: "eslint(no-restricted-properties)",
    code: "export const x = AbortSignal.timeout(5);",
  },
  { file: "lib/rm.ts", rule: "eslint(no-restricted-imports)", code: 'export { rm } from "node:fs/promises";' },
  {
    file: "lib/rm-property.ts",
    rule: "eslint(no-restricted-properties)",
    code: 'import * as fs from "node:fs";\nfs.rmSync("x");',
  },
  {
    file: "pods/floating.ts",
    rule: "typescript(no-floating-promises)",
    code: "export async function a(): Promise<void> {\n  a();\n}",
  },
  {
    file: "pods/misused.ts",
    rule: "typescript(no-misused-promises)",
    code: "export const x = (a: () => Promise<void>): void => [1].forEach(async () => a());",
  },
  {
    file: "pods/switch.ts",
    rule: "typescript(switch-exhaustiveness-check)",
    code: 'export function x(a: "a" | "b"): void {\n  switch (a) {\n    case "a":\n  }\n}',
  },
  {
    file: "pods/cycle-a.ts",
    rule: "import(no-cycle)",
    code: 'import { b } from "./cycle-b.ts";\nexport const a = (): unknown => b;',
  },
  {
    file: "pods/cycle-b.ts",
    rule: undefined,
    code: 'import { a } from "./cycle-a.ts";\nexport const b = (): unknown => a;',
  },
];

const HOUSE: readonly Sample[] = [
  {
    file: "pods/house-ok.ts",
    rule: undefined,
    code: "// new Date() is only talked about\nexport const x = new Date(0);",
  },
  { file: "pods/date.ts", rule: "no-bare-date", code: "export const x = new Date();" },
  { file: "pods/global.ts", rule: "no-global-escape", code: "export const x = globalThis.setTimeout(() => 1, 1);" },
  { file: "lib/rmdir.ts", rule: "no-recursive-rmdir", code: 'fs.rmdirSync("x", { recursive: true });' },
  { file: "adapters/out.ts", rule: "no-direct-output", code: 'process.stderr.write("x");' },
  { file: "lib/out.ts", rule: "no-direct-output", code: 'writeSync(2, "x");' },
  { file: "lib/output.ts", rule: undefined, code: "export const x = process.stdout;" },
  { file: "pods/own-keys.ts", rule: "own-keys-only", code: "export const x = pod.metadata.labels?.[key];" },
  { file: "pods/own-constant.ts", rule: undefined, code: "export const x = pod.metadata.labels?.[OS_LABEL];" },
  { file: "pods/enum.ts", rule: "no-enum", code: "export const enum X { a }" },
  { file: "pods/manager.ts", rule: "no-manager", code: "export class PodManager {}" },
  { file: "pods/todo.ts", rule: "todo-has-issue", code: `// ${"TO"}${"DO"}: some day` },
  { file: "pods/utils.ts", rule: "no-vague-file-name", code: "export {};" },
  ...[
    'log.info("Started agent", { version });\nthis.deps.log.debug(2, "Looked", {});\nlog.warn(\n  "Failed to look",\n);',
    'log.error("Failed to write e.g. a file", error);',
  ].map((code, place) => ({ file: `images/log-ok-${place}.ts`, rule: undefined, code })),
  ...[
    'log.info("started the agent");',
    'log.warn("Failed.");',
    "log.info(`Started ${name}`);",
    'this.deps.log.error(\n  "failed to start",\n  error,\n);',
    "log.debug(4, message, {});",
    'log.debug(level, "looked");',
  ].map((code, place) => ({ file: `images/log-${place}.ts`, rule: "log-message-form", code })),
  ...["(16, item 9)", "(13 items 5, 7)", "section 12 of the reference", "Section 4.2: flags", "starts again (9)."].map(
    (text, place) => ({
      file: `model/cites-${place}.ts`,
      rule: "no-outside-citation",
      code: `/** As told: ${text} */`,
    }),
  ),
  { file: "dashboard/spread.ts", rule: "no-literal-spread", code: "export const x = { ...{ a, b }, c };" },
  { file: "dashboard/spread-ok.ts", rule: undefined, code: "export const x = { ...rest, ...(c && { c }), d };" },
  {
    file: "model/cites-nothing.ts",
    rule: undefined,
    code: "/** RFC 9110, section 5.6; inotify(7); the type (1), the port (10250). */\nexport const item = list(2);",
  },
];

const LAYERS: readonly Sample[] = [
  { file: "images/index.ts", rule: undefined, code: 'export { inner } from "./inner.ts";' },
  { file: "images/inner.ts", rule: undefined, code: 'import { x } from "../lib/x.ts";\nexport const inner = x;' },
  { file: "lib/x.ts", rule: undefined, code: 'export { readFileSync as x } from "node:fs";' },
  { file: "adapters/y.ts", rule: undefined, code: 'export { x } from "../lib/x.ts";\nexport * from "node:net";' },
  { file: "agent/kubelet.ts", rule: undefined, code: 'export { inner } from "../images/index.ts";' },
  { file: "lib/up.ts", rule: "layer-lib", code: 'export * from "../model/m.ts";' },
  { file: "model/m.ts", rule: "layer-model", code: 'export * from "../config/c.ts";' },
  {
    file: "config/c.ts",
    rule: "layer-config",
    code: 'import type { x } from "../adapters/y.ts";\nexport type X = typeof x;',
  },
  { file: "adapters/z.ts", rule: "layer-adapters", code: 'export * from "../images/index.ts";' },
  {
    file: "volumes/v.ts",
    rule: "layer-feature",
    code: 'import type { inner } from "../images/index.ts";\nexport type X = typeof inner;',
  },
  { file: "cli/face.ts", rule: "feature-face", code: 'export * from "../images/inner.ts";' },
  { file: "adapters/cri/cri-x.ts", rule: undefined, code: "export const cri = 1;" },
  { file: "agent/part.ts", rule: "runtime-port", code: 'export { cri } from "../adapters/cri/cri-x.ts";' },
  { file: "cli/root.ts", rule: "agent-below-cli", code: 'export * from "../agent/part.ts";' },
  { file: "whatever/new.ts", rule: "feature-unknown", code: 'export * from "../lib/x.ts";' },
  { file: "pods/files.ts", rule: "outside-world", code: 'export { readFileSync } from "node:fs";' },
  { file: "pods/h2.ts", rule: "outside-world", code: 'export { connect } from "node:http2";' },
  { file: "config/dns.ts", rule: "outside-world", code: 'export { lookup } from "node:dns/promises";' },
  { file: "cli/native.ts", rule: "outside-world", code: 'import koffi from "koffi";\nexport const x = koffi;' },
  { file: "entry.ts", rule: "entry-is-tiny", code: 'export { x } from "./lib/x.ts";' },
  { file: "images/testing.ts", rule: "not-to-test", code: 'export * from "./some.test.ts";' },
  { file: "images/some.test.ts", rule: undefined, code: "export const t = 1;" },
  { file: "lib/dev.ts", rule: "not-to-dev-dependency", code: 'export { build } from "esbuild";' },
  {
    file: "pods/loop-a.ts",
    rule: "no-cycle",
    code: 'import { b } from "./loop-b.ts";\nexport const a = (): unknown => b;',
  },
  {
    file: "pods/loop-b.ts",
    rule: undefined,
    code: 'import { a } from "./loop-a.ts";\nexport const b = (): unknown => a;',
  },
  {
    file: "model/knot-a.ts",
    rule: "no-type-knot",
    code: 'import type { B } from "./knot-b.ts";\nexport interface A {\n  readonly b: B;\n}',
  },
  {
    file: "model/knot-b.ts",
    rule: undefined,
    code: 'import type { A } from "./knot-a.ts";\nexport interface B {\n  readonly a: A;\n}',
  },
  { file: "pods/lost.ts", rule: "not-unresolvable", code: 'export * from "./nowhere.ts";' },
];

/** A project of samples with this repository's configuration; returns its folder. */
function makeProject(samples: readonly Sample[]): string {
  const project = mkdtempSync(join(tmpdir(), "kubelet-lint-"));
  for (const name of [".oxlintrc.json", ".dependency-cruiser.cjs", "tsconfig.json", "package.json"]) {
    cpSync(join(root, name), join(project, name));
  }
  symlinkSync(join(root, "node_modules"), join(project, "node_modules"));
  for (const { file, code } of samples) {
    mkdirSync(dirname(join(project, "src", file)), { recursive: true });
    writeFileSync(join(project, "src", file), `${code}\n`);
  }
  return project;
}

/** Runs `work` on such a project and removes it. */
function inProject<T>(samples: readonly Sample[], work: (project: string) => T): T {
  const project = makeProject(samples);
  try {
    return work(project);
  } finally {
    rmSync(project, { recursive: true });
  }
}

/** Registers one test a sample; `check` gives the lines that a checker printed about the project. */
function testSamples(checker: string, samples: readonly Sample[], check: (project: string) => string[]): void {
  describe(checker, () => {
    let lines: string[] = [];
    before(() => {
      lines = inProject(samples, check);
    });
    for (const { file, rule } of samples) {
      test(`${file} ${rule === undefined ? "is fine" : `breaks ${rule}`}`, () => {
        // Of a cycle only one file is named, whichever was read first.
        const about = lines.filter(
          (line) => line.startsWith(`src/${file}:`) && (rule || !/no-cycle|no-type-knot/.test(line)),
        );
        if (rule === undefined) assert.deepEqual(about, []);
        else
          assert.ok(
            about.some((line) => line.includes(rule)),
            `nothing about ${rule} in:\n${lines.join("\n")}`,
          );
      });
    }
  });
}

function runNode(args: readonly string[], cwd: string): string[] {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: "utf8" });
  assert.equal(status, 1, `must fail: ${stdout}${stderr}`);
  return stdout.split("\n");
}

testSamples("oxlint", OXLINT, (project) =>
  runNode([join(root, "node_modules/oxlint/bin/oxlint"), "--type-aware", "-f", "unix", "src"], project),
);
testSamples("house rules", HOUSE, (project) => runNode([join(root, "scripts/check-rules.mjs"), project], project));
testSamples("layers", LAYERS, (project) => runNode([join(root, "scripts/check-layers.mjs"), project], project));

test("a layer check that read nothing fails", () => {
  const alone = [{ file: "lib/alone.ts", code: "export const x = 1;", rule: undefined }];
  const lines = inProject(alone, (project) => runNode([join(root, "scripts/check-layers.mjs"), project], project));
  assert.match(lines.join("\n"), /no import was read/);
});

test("house rules that read nothing fail", () => {
  const lines = inProject([], (project) => runNode([join(root, "scripts/check-rules.mjs"), project], project));
  assert.match(lines.join("\n"), /no file was checked/);
});
