// The first line of each commit has at most 72 characters. Older commits than BASE are as they are.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const BASE = "43ae72ec037c2147ef22840ef2fc3f42f971786c";
const LIMIT = 72;
const root = join(import.meta.dirname, "..");

const { status, stdout } = spawnSync("git", ["log", "--no-merges", "--format=%h %s", `${BASE}..HEAD`], {
  cwd: root,
  encoding: "utf8",
});
if (status === 0) {
  const long = stdout.split("\n").filter((line) => line.slice(line.indexOf(" ") + 1).length > LIMIT);
  for (const line of long) process.stdout.write(`subject longer than ${LIMIT} characters: ${line}\n`);
  process.exitCode = long.length > 0 ? 1 : 0;
} else process.stdout.write("commit subjects are not checked: this checkout does not reach back far enough\n");
