import { ago, type CellStyle, displayWidth, paint } from "../lib/table.ts";
import type { PodSummary } from "../model/step.ts";
import { timeOfDay } from "./time-of-day.ts";
import type { ViewModel } from "./view-model.ts";
import { isBusy, nowWords, stateStyle } from "./words.ts";

export interface ViewSize {
  readonly columns: number;
  readonly rows: number;
  readonly color: boolean;
}

/** A piece of a line with its style; the style costs no columns. */
type Span = string | readonly [text: string, style: CellStyle];

/** The live view as lines that fit the terminal: header, pods (those with something going on first), what to try. */
export function renderView(model: ViewModel, now: number, size: ViewSize): string[] {
  const head = header(model, now);
  const foot = footer(model);
  // One row stays free for the cursor; a very low terminal loses the footer before the pods.
  const room = Math.max(3, size.rows - 1 - head.length);
  const shownFoot = room - foot.length >= Math.min(model.pods.length, 4) ? foot : [];
  const lines = [...head, ...podLines(model.pods, now, room - shownFoot.length), ...shownFoot];
  return lines.slice(0, Math.max(1, size.rows - 1)).map((line) => fit(line, size));
}

function header(model: ViewModel, now: number): Span[][] {
  const lines: Span[][] = [[[model.title, "bold"], model.runtime === "" ? "" : `  ${model.runtime}`]];
  const shownName = (name: string): string => (name === "cadvisor" ? "page" : name);
  const width = Math.max(9, ...model.ports.map(({ name }) => shownName(name).length)) + 1;
  for (const port of model.ports) {
    const name = `  ${shownName(port.name).padEnd(width)}`;
    if (port.address !== undefined) lines.push([name, [portUrl(port.name, port.address), "cyan"]]);
    else lines.push([name, [port.trouble ?? "not open", port.trouble === undefined ? "dim" : "red"]]);
  }
  lines.push([`  ${"state".padEnd(width)}`, [model.stateDir, "cyan"], ["  log ", "dim"], [model.logFile, "dim"]]);
  if (model.starting !== undefined) {
    lines.push([], [["  … ", "yellow"], `${model.starting.text} (${ago(Math.max(0, now - model.starting.since))})`]);
  }
  return [...lines, []];
}

function portUrl(name: string, address: string): string {
  // A socket of plugins.
  if (address.startsWith("/")) return address;
  if (name === "API") return `https://${address}`;
  if (name === "main") return `https://${address}/pods`;
  if (name === "cadvisor") return `${isLoopback(address) ? "http" : "https"}://${address}/`;
  return name === "health" ? `http://${address}/healthz` : `http://${address}/pods`;
}

/** True if only this machine reaches the address: then it is not HTTPS. */
function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address.startsWith("[::1]");
}

function podLines(pods: readonly PodSummary[], now: number, room: number): Span[][] {
  if (pods.length === 0) return [[["  no pods yet", "dim"]]];
  const byName = [...pods].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const fits = byName.length <= room;
  // Too many: what goes on is what one wants to see.
  const ranked = fits ? byName : [...byName].sort((a, b) => Number(isQuiet(a, now)) - Number(isQuiet(b, now)));
  const shown = fits ? ranked : ranked.slice(0, Math.max(1, room - 1));
  const widths = {
    name: Math.max(...shown.map((pod) => displayWidth(pod.name))),
    state: Math.max(...shown.map((pod) => displayWidth(pod.state))),
    ip: Math.max(...shown.map((pod) => pod.ip.length)),
  };
  const lines = shown.map((pod) => podLine(pod, now, widths));
  const hidden = ranked.slice(shown.length);
  if (hidden.length > 0) lines.push([[`  … and ${hidden.length} more${hiddenWords(hidden)}`, "dim"]]);
  return lines;
}

function podLine(pod: PodSummary, now: number, widths: { name: number; state: number; ip: number }): Span[] {
  const style = stateStyle(pod);
  const mark = style === "green" ? "●" : style === "red" ? "✗" : style === "dim" ? "○" : "◌";
  const pad = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - displayWidth(text)));
  const restarts = pod.restarts === 0 ? "" : `${pod.restarts} restart${pod.restarts === 1 ? "" : "s"}`;
  const about = nowWords(pod, now) || startWords(pod);
  return [
    "  ",
    [mark, style],
    ` ${pad(pod.name, widths.name)}  `,
    [pad(pod.state, widths.state), style],
    `  ${pad(pod.ip, widths.ip)}  `,
    [[about, restarts].filter((text) => text !== "").join(", "), "dim"],
  ];
}

/** Words that stay true while nothing is drawn. */
function startWords({ startedAt, seenAt }: PodSummary): string {
  if (startedAt === undefined) return "";
  // Nothing is known about when a pod was wanted that is not wanted any more.
  return seenAt > 0 && startedAt >= seenAt
    ? `started in ${ago(startedAt - seenAt)}`
    : `up since ${timeOfDay(startedAt)}`;
}

function isQuiet(pod: PodSummary, now: number): boolean {
  return stateStyle(pod) === "green" && !isBusy(pod.step) && nowWords(pod, now) === "";
}

function hiddenWords(pods: readonly PodSummary[]): string {
  const counts = new Map<string, number>();
  for (const pod of pods) counts.set(pod.state, (counts.get(pod.state) ?? 0) + 1);
  return ` (${[...counts].map(([state, count]) => `${count} ${state}`).join(", ")})`;
}

function footer(model: ViewModel): Span[][] {
  if (model.starting !== undefined) return [];
  const { program, flags } = model;
  const call = (words: string): string => `${program} ${words}${flags === "" ? "" : ` ${flags}`}`;
  const named = (pod: PodSummary | undefined): string => pod?.name ?? "POD";
  const running = model.pods.find((pod) => stateStyle(pod) === "green");
  const troubled = model.pods.find((pod) => stateStyle(pod) === "red") ?? running;
  const [url] = model.urls;
  const hints: [string, string][] = [
    ...(url === undefined ? [] : [[`curl ${url}`, "talk to a pod"] as [string, string]]),
    ...(isOpen(model, "API")
      ? [[`kubectl --kubeconfig ${model.kubeconfig} get pods`, "the same from kubectl"] as [string, string]]
      : []),
    [call("ps"), "list the pods"],
    [call(`logs -f ${named(running)}`), "read along"],
    [call(`explain ${named(troubled)}`), "what it does and why"],
    ...(isOpen(model, "cadvisor") ? [[call("open"), "a login link of the page"] as [string, string]] : []),
    ["Ctrl-C", "stops the agent, not the pods"],
    [call("down"), "removes everything"],
  ];
  const width = Math.max(...hints.map(([what]) => displayWidth(what)));
  return [[], ...hints.map(([what, why]): Span[] => [`  ${what.padEnd(width)}  `, [why, "dim"]])];
}

function isOpen({ ports }: ViewModel, port: string): boolean {
  return ports.some(({ name, address }) => name === port && address !== undefined);
}

/** Cuts a line to the terminal's width, with `…` where something is missing, and paints it. */
function fit(spans: readonly Span[], { columns, color }: ViewSize): string {
  let left = Math.max(1, columns);
  let line = "";
  const total = spans.reduce((sum, span) => sum + displayWidth(typeof span === "string" ? span : span[0]), 0);
  const limit = total > left ? left - 1 : left;
  left = limit;
  for (const span of spans) {
    const [raw, style] = typeof span === "string" ? [span, undefined] : span;
    const text = cut(clean(raw), left);
    left -= displayWidth(text);
    line += style === undefined || text === "" ? text : paint(text, style, color);
    if (left <= 0) break;
  }
  return total > limit ? `${line}…` : line.trimEnd();
}

function cut(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let taken = "";
  let used = 0;
  for (const char of text) {
    used += displayWidth(char);
    if (used > width) break;
    taken += char;
  }
  return taken;
}

/** Foreign text must not move the cursor. */
function clean(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ");
}
