// What a script shows while it works: a spinner line on a terminal, plain lines elsewhere, the log's tail on failure.
// Plain JavaScript without dependencies: it runs before node_modules exists.
import { spawn } from "node:child_process";

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const TAIL_LINES = 40;
const terminal = process.stdout.isTTY === true && process.env.TERM !== "dumb";

/** Thrown by `run` when a command fails; its output's tail has been shown already. */
export class CommandError extends Error {
  constructor(title, code, output) {
    super(`${title} failed (${code})`);
    this.name = "CommandError";
    this.code = code;
    this.output = output;
  }
}

const color = (code, text) =>
  terminal && process.env.NO_COLOR === undefined ? `\u001b[${code}m${text}\u001b[0m` : text;
export const green = (text) => color("32", text);
export const red = (text) => color("31", text);
export const yellow = (text) => color("33", text);
export const dim = (text) => color("2", text);

const took = (since) => seconds(performance.now() - since);
export const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
export const say = (line) => void process.stdout.write(`${line}\n`);

/** The same without a living line, for a command whose own output is shown. */
function plain(title) {
  const since = performance.now();
  say(`… ${title}`);
  const end = (mark, note) => say(`${mark} ${title}${note === "" ? "" : ` ${note}`} ${dim(took(since))}`);
  return { update: () => undefined, done: (note) => end(green("✓"), note), failed: (note) => end(red("✗"), note) };
}

/** A line that lives: `update` changes its small print, `done` and `failed` end it. */
export function progress(title) {
  const since = performance.now();
  let detail = "";
  let frame = 0;
  const clear = () => terminal && process.stdout.write("\r\u001b[2K");
  const draw = () => {
    const text = `${FRAMES[frame++ % FRAMES.length]} ${title} ${took(since)}`;
    const room = (process.stdout.columns ?? 80) - text.length - 3;
    clear();
    process.stdout.write(text + (room > 10 && detail !== "" ? dim(`  ${detail.slice(0, room)}`) : ""));
  };
  const timer = terminal ? setInterval(draw, 100) : undefined;
  if (terminal) draw();
  else say(`… ${title}`);
  const end = (mark, note) => {
    clearInterval(timer);
    clear();
    say(`${mark} ${title}${note === "" ? "" : ` ${note}`} ${dim(took(since))}`);
  };
  return {
    update: (text) => {
      detail = text;
    },
    done: (note = "") => end(green("✓"), note),
    skipped: (note) => end(yellow("–"), note),
    failed: (note = "") => end(red("✗"), note),
  };
}

/**
 * Runs a command under a progress line and resolves to its output.
 * Exit codes in `accept` are no failure: the answer's `code` tells. `through` shows the output as it comes.
 */
export async function run(title, [command, ...args], { cwd, env, accept = [], through = false, note } = {}) {
  const line = through ? plain(title) : progress(title);
  const child = spawn(command, args, { cwd, env: env ?? process.env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let stdout = "";
  const take = (chunk) => {
    output += chunk;
    if (through) process.stdout.write(chunk);
    const lines = output.slice(-2000).split(/[\r\n]+/);
    line.update((lines.findLast((text) => text.trim() !== "") ?? "").trim());
  };
  child.stdout.setEncoding("utf8").on("data", (chunk) => {
    stdout += chunk;
    take(chunk);
  });
  child.stderr.setEncoding("utf8").on("data", take);
  const code = await new Promise((resolve) => {
    child.on("error", (error) => {
      output += `${command}: ${error.message}\n`;
      resolve(127);
    });
    child.on("close", (status, signal) => resolve(signal ?? status));
  });
  if (code === 0 || accept.includes(code)) {
    line.done(note?.(output, code) ?? "");
    return { code, output, stdout };
  }
  line.failed(`(${typeof code === "string" ? code : `exit code ${code}`})`);
  if (!through) say(tail(output));
  throw new CommandError(title, code, output);
}

/** The last lines of a log, indented, with a word about what was cut. */
export function tail(output, limit = TAIL_LINES) {
  const lines = output.trimEnd().split("\n");
  const cut = lines.length - limit;
  const shown = cut > 0 ? [`… ${cut} earlier lines`, ...lines.slice(-limit)] : lines;
  return shown.map((text) => `    ${text}`).join("\n");
}

/** Rows below a line of titles, in columns as wide as their longest word; numbers stand to the right. */
export function table(titles, rows) {
  const all = [titles, ...rows];
  const widths = titles.map((_, column) => Math.max(...all.map((row) => row[column].length)));
  const cell = (text, column) => (column === 0 ? text.padEnd(widths[column]) : text.padStart(widths[column]));
  return all.map((row) => `  ${row.map(cell).join("  ")}`).join("\n");
}
