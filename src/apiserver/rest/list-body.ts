import type { RouteAnswer } from "../../adapters/net/http-route.ts";
import { eventLoopTurn } from "../../lib/turn.ts";
import type { ListPage } from "../operations/list.ts";
import type { StoredObject } from "../store/index.ts";
import { type ListForm, listForm, type Rendering } from "./render.ts";

/** Bytes of a chunk: what a list takes of the memory however long it is. Shorter lists are sent as a whole. */
const CHUNK = 128 * 1024;
/** Of YAML, which takes a hundred times as long to write. */
const YAML_CHUNK = 16 * 1024;
/** An UTF-16 unit becomes this many bytes of UTF-8 at most. */
const MOST_BYTES = 3;

/** The answer to a list. A long one is written while the client reads it, with turns for others in between. */
export async function listAnswer(rendering: Rendering, page: ListPage): Promise<RouteAnswer> {
  const { encoding } = rendering.format;
  const form = listForm(rendering, page);
  const pieces = encoding === "json" ? jsonPieces(form, page.items) : await yamlPieces(form, page.items);
  const body = isLong(page.items) ? chunksOf(pieces, encoding === "json" ? CHUNK : YAML_CHUNK) : [...pieces].join("");
  return { status: 200, type: `application/${encoding}`, body };
}

/** What a list in flight takes of the memory: its chunk, buffers of the socket, and versions that were replaced since. */
export const LONG_LIST_BYTES = 1 << 20;

/** True for a list that is not sent as a whole. */
export function isLong(items: readonly StoredObject[]): boolean {
  let length = 0;
  return items.some((object) => {
    length += object.text.length;
    return length > CHUNK;
  });
}

function* jsonPieces({ head, field, itemText }: ListForm, items: readonly StoredObject[]): Generator<string> {
  yield `${JSON.stringify(head).slice(0, -1)},"${field}":[`;
  let separator = "";
  for (const object of items) {
    yield separator;
    yield itemText(object);
    separator = ",";
  }
  yield "]}\n";
}

async function yamlPieces(form: ListForm, items: readonly StoredObject[]): Promise<Iterable<string>> {
  // Imported at first use: only people ask for it.
  const { stringify } = await import("yaml");
  return (function* () {
    yield stringify(form.head, { aliasDuplicateObjects: false });
    yield items.length === 0 ? `${form.field}: []\n` : `${form.field}:\n`;
    for (const object of items) yield stringify([JSON.parse(form.itemText(object))], { aliasDuplicateObjects: false });
  })();
}

/** Chunks of about the same size. Each is overwritten by the next one. */
async function* chunksOf(pieces: Iterable<string>, size: number): AsyncGenerator<Uint8Array> {
  // Written to in place: joined strings would be copied three times on their way to the socket.
  const buffer = Buffer.allocUnsafeSlow(size);
  let filled = 0;
  for (const piece of pieces) {
    const room = piece.length * MOST_BYTES;
    if (filled + room > size && filled > 0) {
      yield buffer.subarray(0, filled);
      filled = 0;
      await eventLoopTurn();
    }
    if (room > size) {
      yield Buffer.from(piece);
      await eventLoopTurn();
    } else filled += buffer.write(piece, filled);
  }
  if (filled > 0) yield buffer.subarray(0, filled);
}
