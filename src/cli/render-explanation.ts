import { wrap } from "../config/index.ts";
import { ago, bytesWords, type Cell, paint, table } from "../lib/table.ts";
import type { StoragePart } from "../model/pod-storage.ts";
import type { PodExplanation } from "../model/step.ts";
import { timesWords, typeCell } from "./events.ts";
import { waterfall } from "./waterfall.ts";
import { stateStyle, stepTime, stepWords } from "./words.ts";

export interface RenderOptions {
  readonly now: number;
  readonly color: boolean;
  readonly columns: number;
}

/** How many steps and events are shown; the rest is in `-o json`. */
const SHOWN_STEPS = 16;
const SHOWN_EVENTS = 8;

/** A pod on one screen: its state, its steps, its errors and events. */
export function renderExplanation(pod: PodExplanation, how: RenderOptions): string {
  const sections = [
    overview(pod, how),
    section("Steps", waterfall(pod.steps.slice(-SHOWN_STEPS), how), how),
    section("Containers", containers(pod, how), how),
    section("Storage", storage(pod, how), how),
    section("Errors", errors(pod, how), how),
    section("Warnings", pod.warnings.flatMap((warning) => indented(warning, how)).join(""), how),
    section("Events", events(pod, how), how),
  ];
  return sections.filter((text) => text !== "").join("\n");
}

function overview(pod: PodExplanation, { now, color }: RenderOptions): string {
  const facts = [
    pod.state,
    `${pod.readyContainers} of ${pod.totalContainers} ready`,
    pod.restarts === 1 ? "1 restart" : `${pod.restarts} restarts`,
    pod.ip === "" ? "no IP" : `IP ${pod.ip}`,
  ];
  const rows: Cell[][] = [
    ["Pod", { text: `${pod.namespace}/${pod.name}`, style: "bold" }],
    ["State", { text: facts.join(", "), style: stateStyle(pod) }],
  ];
  const { step, next } = pod;
  if (step !== undefined) {
    const over = step.until === undefined ? "for" : `${step.outcome === "failed" ? "failed" : "done"} after`;
    rows.push([step.until === undefined ? "Now" : "Last step", `${stepWords(step)} (${over} ${stepTime(step, now)})`]);
  }
  if (next !== undefined) {
    const when = next.at > now ? `in ${ago(next.at - now)}` : "now";
    rows.push(["Next try", `${when}${next.why === "" ? "" : `, ${next.why}`}`]);
  }
  rows.push(["From", `${pod.source}, seen ${ago(Math.max(0, now - pod.seenAt))} ago`], ["UID", pod.uid]);
  return table(rows, { color });
}

function section(title: string, body: string, { color }: RenderOptions): string {
  return body === "" ? "" : `${paint(title, "bold", color)}\n${body}`;
}

function containers(pod: PodExplanation, { now, color }: RenderOptions): string {
  const rows = pod.containers.map((container): Cell[] => {
    const why = [container.reason, container.exitCode === undefined ? "" : `exit ${container.exitCode}`];
    const detail = why.filter((text) => text !== "").join(", ");
    const style = container.state === "running" ? "green" : container.reason === "Completed" ? "dim" : "yellow";
    return [
      `  ${container.name}${container.kind === "regular" ? "" : ` (${container.kind})`}`,
      { text: `${container.state}${detail === "" ? "" : `: ${detail}`}`, style },
      container.since === undefined ? "" : ago(Math.max(0, now - container.since)),
      container.restarts === 1 ? "1 restart" : `${container.restarts} restarts`,
      { text: container.image, style: "dim" },
    ];
  });
  return table(rows, { color });
}

const STORAGE_WORDS = {
  emptyDir: "emptyDir",
  volume: "volume",
  log: "log of",
  layer: "layer of",
  file: "file",
} as const;

const HOW_WORDS = { quota: "counted by quota", walk: "walked", filesystem: "", runtime: "" } as const;

function noteOf({ kind, isMemory, isOld, usage }: Pick<StoragePart, "kind" | "isMemory" | "isOld" | "usage">): string {
  if (isOld === true) return "terminated";
  if (isMemory) return "in memory";
  return kind === "emptyDir" ? HOW_WORDS[usage?.by ?? "runtime"] : "";
}

/** Files of the agent are shown from this size on, in bytes: every pod has them, and they are small. */
const SMALL_FILES = 64 * 1024;

/** The local storage of the pod, where it is worth a line. */
function storage({ storage }: PodExplanation, { color }: RenderOptions): string {
  const parts = (storage?.parts ?? []).filter(({ kind, usage }) => {
    const least = kind === "file" ? SMALL_FILES : 0;
    return kind === "emptyDir" || (kind !== "volume" && (usage?.bytes ?? 0) > least);
  });
  if (storage === undefined || parts.length === 0) return "";
  const rows = parts.map(({ kind, name, isMemory, isOld, sizeLimit, usage }): Cell[] => {
    const isFull = sizeLimit !== undefined && usage !== undefined && usage.bytes > sizeLimit;
    return [
      `  ${STORAGE_WORDS[kind]} ${name}`,
      { text: usage === undefined ? "not measured yet" : bytesWords(usage.bytes), style: isFull ? "red" : "bold" },
      { text: sizeLimit === undefined ? "" : `of ${bytesWords(sizeLimit)}`, style: "dim" },
      { text: noteOf({ kind, isMemory, isOld, usage }), style: "dim" },
    ];
  });
  const all: Cell[] = [
    "  all on disk",
    `${bytesWords(storage.bytes)}${storage.isFresh ? "" : ", still being measured"}`,
  ];
  return table([...rows, all], { color });
}

function errors(pod: PodExplanation, how: RenderOptions): string {
  const age = (wall: number): string => `${ago(Math.max(0, how.now - wall))} ago`;
  return pod.errors
    .map((error) => {
      const where = error.container === undefined ? error.step : `${error.step} ${error.container}`;
      const when =
        error.count > 1 ? `${error.count} times, first ${age(error.first)}, last ${age(error.last)}` : age(error.last);
      return `  ${paint(where, "red", how.color)} (${when})\n${indented(error.message, how, "    ").join("")}`;
    })
    .join("");
}

function events(pod: PodExplanation, { now, color }: RenderOptions): string {
  const rows = pod.events
    .slice(-SHOWN_EVENTS)
    .map((event): Cell[] => [
      `  ${ago(Math.max(0, now - event.last))}`,
      typeCell(event),
      event.reason,
      event.message + timesWords(event),
    ]);
  return table(rows, { color });
}

/** Foreign text wrapped, without anything that could move the cursor. */
function indented(text: string, { columns }: RenderOptions, indent = "  "): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  const clean = text.replaceAll(/[\s\u0000-\u001f\u007f-\u009f]+/g, " ").trim();
  return wrap(clean, Math.max(20, columns - indent.length)).map((line) => `${indent}${line}\n`);
}
