import type { BodySink, PushedBody } from "../../adapters/net/http-route.ts";
import type { Clock } from "../../lib/clock.ts";
import { eventLoopTurn } from "../../lib/turn.ts";
import { pulled, type Taken, type Watch, type WatchItem } from "../operations/watch-stream.ts";
import type { EventLines } from "./event-lines.ts";
import { type Rendering, tableOfObjects } from "./render.ts";

const INITIAL_END = "k8s.io/initial-events-end";

/** Bytes of a chunk: a client that does not read holds one of them. */
const CHUNK = 64 * 1024;

export interface WatchBodyDeps {
  readonly clock: Clock;
  readonly lines: EventLines;
  readonly watch: Watch;
}

/**
 * The lines of a watch, one event each. An event is sent by the one who publishes it, without a promise or a copy; many at
 * once are sent in chunks, with turns for others in between.
 */
export class WatchBody implements PushedBody {
  /** What was taken of the watch and not sent yet. */
  private rest: Taken<readonly WatchItem[]> = { items: [], hasMore: false };

  constructor(
    private readonly deps: WatchBodyDeps,
    private readonly rendering: Omit<Rendering, "now">,
  ) {}

  sendTo(sink: BodySink): { resume(): void; stop(): void } {
    const { watch } = this.deps;
    let isRoom = true;
    let isTurn = true;
    let isOver = false;
    const end = (finish: () => void): void => {
      isOver = true;
      watch.close();
      finish();
    };
    const send = (): void => {
      if (isOver || !isRoom || !isTurn) return;
      try {
        const chunk = this.take();
        if (chunk === undefined) return end(() => sink.end());
        if (chunk.items.length > 0) isRoom = sink.write(chunk.items);
        if (!chunk.hasMore) return;
        isTurn = false;
        void eventLoopTurn().then(() => {
          isTurn = true;
          send();
        });
      } catch (error) {
        // The publisher of an event must not fail for one of its readers.
        end(() => sink.fail(error));
      }
    };
    watch.onReady(send);
    send();
    const resume = (): void => {
      isRoom = true;
      send();
    };
    return { resume, stop: () => end(() => undefined) };
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const { watch } = this.deps;
    return pulled({ take: () => this.take(), onReady: (reader) => watch.onReady(reader), close: () => watch.close() });
  }

  /** The next chunk; it may be empty. */
  private take(): Taken<Buffer> | undefined {
    if (this.rest.items.length === 0) {
      const batch = this.deps.watch.take();
      if (batch === undefined) return undefined;
      this.rest = batch;
    }
    const { items, hasMore } = this.rest;
    const rendering = { ...this.rendering, now: this.deps.clock.now().wall };
    const lines: Buffer[] = [];
    let bytes = 0;
    for (const item of items) {
      const line = this.lineOf(rendering, item);
      if (bytes > 0 && bytes + line.length > CHUNK) break;
      lines.push(line);
      bytes += line.length;
    }
    // Once a batch is cut, its last chunk asks the watch again: what became ready meanwhile woke nobody.
    const isMore = hasMore || lines.length < items.length;
    this.rest = { items: items.slice(lines.length), hasMore: isMore };
    return { items: joined(lines), hasMore: isMore };
  }

  private lineOf(rendering: Rendering, item: WatchItem): Buffer {
    if (item.type === "ERROR") return Buffer.from(`${JSON.stringify({ type: item.type, object: item.status })}\n`);
    if (item.type !== "BOOKMARK") return this.deps.lines.lineOf(rendering, item);
    return Buffer.from(`${JSON.stringify({ type: item.type, object: bookmarkOf(rendering, item) })}\n`);
  }
}

/** One line alone is shared with other watches, and not copied. */
function joined(lines: readonly Buffer[]): Buffer {
  const [first] = lines;
  return lines.length === 1 && first !== undefined ? first : Buffer.concat(lines);
}

function bookmarkOf(
  rendering: Rendering,
  { revision, isInitialEnd }: Extract<WatchItem, { type: "BOOKMARK" }>,
): object {
  const { kind, format } = rendering;
  const annotations = isInitialEnd ? { annotations: { [INITIAL_END]: "true" } } : {};
  const metadata = { resourceVersion: String(revision), ...annotations };
  if (format.as === "table") return tableOfObjects(rendering, [], { metadata });
  if (format.as === "metadata")
    return { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${format.version}`, metadata };
  return { kind: kind.resource.kind, apiVersion: kind.apiVersion, metadata };
}
