// House rules that neither oxlint nor dependency-cruiser can express: regular expressions over the source.
// Usage: node scripts/check-rules.mjs [ROOT]   (exit 1 and "file:line: message" for each breach)
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";

const SOURCE = /^src\/.*\.ts$/;
const TEST = /\.test\.ts$/;
const OUTSIDE_WORLD = /^src\/(lib|adapters)\//;
const WRITERS = /^src\/(entry\.ts$|lib\/(log|output|terminal)[-./])/;

const isSource = (file) => SOURCE.test(file) && !TEST.test(file);
const isInner = (file) => isSource(file) && !OUTSIDE_WORLD.test(file);

const LOG_CALL = /(?<![\w$])log\??\.(info|warn|error|debug)\(\s*/g;
/** `FLAG: --name="value"` is how Kubernetes prints each flag, and the one message that is not constant. */
const LOG_MESSAGE = /^(?:"[A-Z](?:[^"\\]|\\.)*[^".]"\s*[,)]|`FLAG: )/;

/** Where a log message is not a constant sentence with a capital letter and without a full stop. */
function badLogMessages(code) {
  return [...code.matchAll(LOG_CALL)]
    .map((call) => {
      const start = call.index + call[0].length;
      // The first argument of `debug` is its level.
      const skipped = call[1] === "debug" ? (/^[^,()"`]*,\s*/.exec(code.slice(start))?.[0].length ?? 0) : 0;
      return start + skipped;
    })
    .filter((at) => !LOG_MESSAGE.test(code.slice(at, at + 400)));
}

/** One rule a row: where it holds, what it finds, what to do instead. */
const RULES = [
  {
    name: "no-bare-date",
    applies: isInner,
    pattern: /\bnew Date\(\s*\)|(?<![.\w])Date\(\s*\)/,
    message: "reads the machine's time: ask the injected Clock",
  },
  {
    name: "no-global-escape",
    applies: isInner,
    pattern: /\bglobal(This)?\s*(\.|\[\s*["'])(setTimeout|setInterval|setImmediate|fetch|Date|performance|console)\b/,
    message: "a restricted global under another name",
  },
  {
    name: "no-recursive-rmdir",
    applies: isSource,
    pattern: /\brmdir(Sync)?\([^)]*recursive/,
    message: "recursive removal: use host.removeTree()",
  },
  {
    name: "no-direct-output",
    applies: (file) => isSource(file) && !WRITERS.test(file),
    pattern: /\bprocess\s*(\.|\[\s*["'])(stdout|stderr)\b|\bwriteSync\(\s*[12]\s*,/,
    message: "writes to the terminal: use lib/log or lib/output",
  },
  {
    name: "own-keys-only",
    applies: isSource,
    pattern: /\b(labels|annotations|nodeSelector|matchLabels|data|binaryData)(\?\.)?\[[a-z]\w*\](?!\s*=[^=])/,
    message: "a key that a user may choose also finds what every object inherits: use ownValue()",
  },
  {
    name: "no-enum",
    applies: isSource,
    pattern: /^\s*(export\s+)?(declare\s+)?(const\s+)?enum\s+\w/,
    message: "use a union of string literals",
  },
  {
    name: "no-manager",
    applies: isSource,
    pattern: /\bclass\s+\w*Manager\b/,
    message: "say what it does instead of Manager",
  },
  {
    name: "todo-has-issue",
    applies: (file) => SOURCE.test(file) || /^(test|bench)\/.*\.ts$/.test(file),
    pattern: /\b(TODO|FIXME|XXX)\b(?!\s*\(#\d+\))/,
    message: "name the issue that owns it: TODO(#12)",
    inComments: true,
  },
  {
    name: "log-message-form",
    applies: (file) => isSource(file) && !file.startsWith("src/lib/log"),
    find: badLogMessages,
    message: "a log message is a constant sentence with a capital letter and no full stop; values are fields",
  },
  {
    name: "no-outside-citation",
    applies: (file) => /^(src|test|bench)\//.test(file) && !/lint-rules/.test(file),
    pattern:
      /^(?!.*\bRFC\b).*(\/\/|\*).*(\bsections? \d|\(\d+(\.\d+)*,? items? \d|[a-z] \(([1-9]|1\d)(\.\d+)?\)\.( |$))/i,
    message: "cites a numbered section of a document outside the repository: say what it says",
    inComments: true,
  },
  {
    name: "no-literal-spread",
    applies: (file) => !file.includes("lint-rules"),
    pattern: /\.\.\.\{/,
    message: "an object literal is spread only to shorten a line: write its fields",
  },
  {
    name: "no-vague-file-name",
    applies: (file) => isSource(file) && /(^|\/)(utils?|helpers?|misc|common|base)(\.ts$|\/)/.test(file),
    pattern: /^/,
    message: "name the file for its main export",
    onlyFirst: true,
  },
];

/** Blanks comments out, keeping line numbers, so that prose about a rule does not break it. */
function withoutComments(text) {
  const blank = (match) => match.replace(/[^\n]/g, " ");
  return text.replace(/\/\*[\s\S]*?\*\//g, blank).replace(/(^|[\s;{}(),])\/\/[^\n]*/g, blank);
}

function* sourceFiles(root, folder) {
  let entries;
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return;
  }
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== "generated" && entry.name !== "node_modules") yield* sourceFiles(root, path);
    } else if (entry.name.endsWith(".ts")) yield relative(root, path);
  }
}

function check(root) {
  const breaches = [];
  let files = 0;
  for (const folder of ["src", "test", "bench"]) {
    for (const file of sourceFiles(root, join(root, folder))) {
      files++;
      const rules = RULES.filter((rule) => rule.applies(file));
      if (rules.length === 0) continue;
      const text = readFileSync(join(root, file), "utf8");
      const code = withoutComments(text).split("\n");
      const lines = text.split("\n");
      for (const rule of rules) {
        for (const at of rule.find?.(code.join("\n")) ?? []) {
          const line = text.slice(0, at).split("\n").length;
          breaches.push(`${file}:${line}: ${rule.message} [${rule.name}]`);
        }
        if (rule.pattern === undefined) continue;
        const searched = rule.inComments ? lines : code;
        for (const [index, line] of searched.entries()) {
          if (rule.pattern.test(line)) breaches.push(`${file}:${index + 1}: ${rule.message} [${rule.name}]`);
          if (rule.onlyFirst) break;
        }
      }
    }
  }
  return { files, breaches };
}

const { files, breaches } = check(resolve(process.argv[2] ?? join(import.meta.dirname, "..")));
for (const breach of breaches) process.stdout.write(`${breach}\n`);
if (files === 0) process.stdout.write("no file was checked\n");
process.exitCode = breaches.length > 0 || files === 0 ? 1 : 0;
