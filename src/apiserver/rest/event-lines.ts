import type { WatchItem } from "../operations/watch-stream.ts";
import type { StoredObject } from "../store/index.ts";
import { objectText, type Rendering } from "./render.ts";

/** An event about an object. */
export type ObjectEvent = Extract<WatchItem, { readonly object: StoredObject }>;

/**
 * Bytes of lines, and characters of the objects that they keep, of which an old version is kept by nobody else: enough for
 * the events that come while a crowd of watches takes them. The newest object always stays.
 */
const MOST_BYTES = 1 << 20;

/** A line, and what it is a line of besides the object. */
interface Line {
  readonly form: string;
  readonly bytes: Buffer;
}

/**
 * The lines of the newest events, shared by all watches: an event is written out once for each form that clients ask for,
 * however many follow. Bounded, because a line is a second copy of its object.
 */
export class EventLines {
  /** In the order of their making. */
  private readonly lines = new Map<StoredObject, Line[]>();
  private bytes = 0;

  constructor(private readonly mostBytes = MOST_BYTES) {}

  /** The line of an event; nobody may change it. */
  lineOf(rendering: Rendering, { type, object }: ObjectEvent): Buffer {
    const form = `${type} ${formOf(rendering)}`;
    const known = this.lines.get(object)?.find((line) => line.form === form);
    if (known !== undefined) return known.bytes;
    const bytes = Buffer.from(`{"type":"${type}","object":${objectText(rendering, object)}}\n`);
    this.keep(object, { form, bytes });
    return bytes;
  }

  private keep(object: StoredObject, line: Line): void {
    const lines = this.lines.get(object);
    if (lines === undefined) {
      this.lines.set(object, [line]);
      this.bytes += object.text.length;
    } else lines.push(line);
    this.bytes += line.bytes.length;
    for (const oldest of this.lines.keys()) {
      if (this.bytes <= this.mostBytes || this.lines.size === 1) return;
      this.drop(oldest);
    }
  }

  private drop(object: StoredObject): void {
    for (const { bytes } of this.lines.get(object) ?? []) this.bytes -= bytes.length;
    if (this.lines.delete(object)) this.bytes -= object.text.length;
  }
}

/** What the text of an object depends on besides the object. */
function formOf({ kind, format, includeObject, now }: Rendering): string {
  switch (format.as) {
    case "table":
      // Ages are whole seconds.
      return `table ${kind.apiVersion} ${format.version} ${includeObject} ${Math.floor(now / 1000)}`;
    case "metadata":
      return `metadata ${kind.apiVersion} ${format.version}`;
    default:
      return kind.apiVersion;
  }
}
