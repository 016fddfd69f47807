import type { Abortable } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { displayWidth } from "../lib/table.ts";
import type { Output } from "./output.ts";
import { renderView } from "./render-view.ts";
import { isMoving, type ViewModel } from "./view-model.ts";

/** At most ten frames a second; a running clock needs one a second. */
const FRAME_MS = 100;
const TICK_MS = 1000;

/**
 * Draws the model in place, on the normal screen. A stopped terminal (Ctrl-S) costs nothing: while a picture is still
 * being written no other is made, and the next one shows the newest state.
 */
export class LiveView {
  private shown: readonly string[] = [];
  private isWriting = false;
  private isDue = false;
  private isOver = false;
  private lastDrawn = Number.NEGATIVE_INFINITY;
  private timer: Timer | undefined;

  constructor(
    private readonly deps: { out: Output; clock: Clock; model: () => ViewModel },
    { signal }: Abortable,
  ) {
    signal.addEventListener("abort", () => this.stop(), { once: true });
  }

  /** Something may have changed. Cheap; may be called at any rate. */
  readonly changed = (): void => {
    this.isDue = true;
    this.plan();
  };

  /** Draws the last picture at once and no more after it. */
  stop(): void {
    if (this.isOver) return;
    this.timer?.cancel();
    if (!this.isWriting) this.draw();
    this.isOver = true;
  }

  private plan(): void {
    if (this.isOver || this.isWriting) return;
    this.timer?.cancel();
    const { clock, model } = this.deps;
    const since = clock.now().mono - this.lastDrawn;
    if (this.isDue) this.timer = clock.after(Math.max(0, FRAME_MS - since), () => this.draw());
    else if (isMoving(model(), clock.now().wall)) this.timer = clock.after(TICK_MS, () => this.draw());
  }

  private draw(): void {
    const { out, clock, model } = this.deps;
    this.isDue = false;
    this.lastDrawn = clock.now().mono;
    const size = { ...out.size(), color: out.color };
    const lines = renderView(model(), clock.now().wall, size);
    const frame = replaceFrame(this.shown, lines, size.columns);
    this.shown = lines;
    if (frame === "") return this.plan();
    this.isWriting = true;
    out.write(frame);
    void out.drained().then(() => {
      this.isWriting = false;
      this.plan();
    });
  }
}

/** What turns the old picture into the new one; empty when they are the same. */
export function replaceFrame(old: readonly string[], lines: readonly string[], columns: number): string {
  if (old.length === lines.length && old.every((line, index) => line === lines[index])) return "";
  // In a terminal that became narrower the old lines take more rows than they had.
  const rows = old.reduce((sum, line) => sum + Math.max(1, Math.ceil(displayWidth(unpainted(line)) / columns)), 0);
  const up = rows === 0 ? "" : `\u001b[${rows}A`;
  return `${up}\r${lines.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`;
}

function unpainted(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour sequences begin with one
  return line.replaceAll(/\u001b\[[0-9;]*m/g, "");
}
