import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createGzip } from "node:zlib";
import type { RouteAnswer, RouteRequest } from "../../adapters/net/http-route.ts";
import { TEXT_TYPE } from "../../lib/metrics-text.ts";

/** A page of metrics, compressed if the client takes it. */
export function pageAnswer(body: string, request: RouteRequest): RouteAnswer {
  return takesGzip(request) ? piecesAnswer([body], request) : { status: 200, type: TEXT_TYPE, body };
}

/** A page in pieces, compressed if the client takes it: a scraper of many pods does. */
export function piecesAnswer(pieces: Iterable<string>, request: RouteRequest): RouteAnswer {
  const { signal } = request;
  if (!takesGzip(request)) return { status: 200, type: TEXT_TYPE, body: oneByOne(pieces) };
  const zipped = createGzip({ level: constants.Z_BEST_SPEED });
  // The error of an abandoned page reaches who reads it.
  pipeline(Readable.from(oneByOne(pieces)), zipped, { signal }).catch(() => undefined);
  return { status: 200, type: TEXT_TYPE, headers: { "Content-Encoding": "gzip" }, body: zipped };
}

/** A client that reads slower than pieces are made has the next one made when it has read the last. */
async function* oneByOne(pieces: Iterable<string>): AsyncGenerator<string> {
  yield* pieces;
}

function takesGzip({ headers }: RouteRequest): boolean {
  return (headers["accept-encoding"] ?? "")
    .split(",")
    .some((one) => /^\s*gzip\s*(;(?!\s*q=0(\.0*)?\s*$)|$)/i.test(one));
}
