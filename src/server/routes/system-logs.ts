import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import { type RouteAnswer, type RouteRequest, textAnswer } from "../../adapters/net/http-route.ts";
import { messageOf } from "../../lib/errors.ts";
import type { ApiDeps, LogEntry } from "../api-deps.ts";
import { type ApiRoute, SYSTEM_LOGS, toSlash } from "../api-route.ts";
import { journalArguments, type LogQuery, QUERY_NAMES, readLogQuery } from "./log-query.ts";

/** The logs of the host. */
export const systemLogRoutes: readonly ApiRoute[] = [
  {
    path: "/logs/",
    methods: ["GET"],
    gate: SYSTEM_LOGS,
    query: "with enableSystemLogQuery: query, sinceTime, untilTime, tailLines, pattern, boot",
    summary: "The directory of the host's logs, or a search in them.",
    handle: systemLogs,
  },
  {
    path: "/logs/*",
    methods: ["GET"],
    gate: SYSTEM_LOGS,
    summary: "A file or a directory of the host's logs; ranges are understood.",
    handle: systemLogs,
  },
  toSlash("/logs", SYSTEM_LOGS),
];

async function systemLogs(deps: ApiDeps, request: RouteRequest): Promise<RouteAnswer> {
  const path = request.params["*"] ?? "";
  const isSearch = deps.switches.current.systemLogQuery && QUERY_NAMES.some((name) => request.query.has(name));
  return isSearch ? search(deps, request, path) : serveFile(deps, request, path);
}

async function serveFile({ systemLogs: logs }: ApiDeps, request: RouteRequest, path: string): Promise<RouteAnswer> {
  const found = await logs.look(path);
  if (found === undefined) return textAnswer(404, "404 page not found\n");
  const isDirectoryPath = path === "" || path.endsWith("/");
  if (found.kind === "directory") {
    if (!isDirectoryPath) return { status: 301, headers: { Location: `${last(path)}/` }, body: "" };
    return { status: 200, type: "text/html; charset=utf-8", body: listing(found.entries) };
  }
  if (isDirectoryPath) return textAnswer(404, "404 page not found\n");
  const modified = new Date(found.modifiedMs).toUTCString();
  const head = { "Last-Modified": modified, "Accept-Ranges": "bytes" };
  const since = Date.parse(request.headers["if-modified-since"] ?? "");
  if (Math.floor(found.modifiedMs / 1000) * 1000 <= since) return { status: 304, headers: head, body: "" };
  const range = readRange(request.headers["range"], found.size);
  if (range === "unsatisfiable") {
    return { ...textAnswer(416, "invalid range\n"), headers: { "Content-Range": `bytes */${found.size}` } };
  }
  const { from, to } = range ?? { from: 0, to: found.size };
  return {
    status: range === undefined ? 200 : 206,
    type: typeOf(path),
    headers: {
      ...head,
      "Content-Length": String(to - from),
      ...(range === undefined ? {} : { "Content-Range": `bytes ${from}-${to - 1}/${found.size}` }),
    },
    body: logs.read(path, { from, to }, request),
  };
}

/** The byte range of a request, `to` excluded; undefined for none or several, which get the whole file. Pure. */
export function readRange(
  header: string | undefined,
  size: number,
): { from: number; to: number } | "unsatisfiable" | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "");
  if (match === null) return undefined;
  const [, first = "", end = ""] = match;
  if (first === "" && end === "") return undefined;
  if (first === "") return end === "0" ? "unsatisfiable" : { from: Math.max(0, size - Number(end)), to: size };
  const from = Number(first);
  const to = end === "" ? size : Math.min(size, Number(end) + 1);
  return from >= size || to <= from ? "unsatisfiable" : { from, to };
}

async function search(deps: ApiDeps, request: RouteRequest, path: string): Promise<RouteAnswer> {
  if (path !== "") return textAnswer(406, "path not allowed in query mode\n");
  const wanted = readLogQuery(request.query);
  if ("refused" in wanted) return textAnswer(wanted.refused, `${wanted.message}\n`);
  const type = "text/plain;charset=UTF-8";
  const body = found(deps, wanted, request);
  if (request.headers["accept-encoding"] !== "gzip") return { status: 200, type, body };
  const zipped = Readable.from(body, { objectMode: false }).pipe(createGzip());
  return { status: 200, type, headers: { "Content-Encoding": "gzip" }, body: zipped };
}

/** The result of a query; an error is appended to the body, as in Kubernetes. */
async function* found(deps: ApiDeps, query: LogQuery, { signal }: RouteRequest): AsyncGenerator<string | Uint8Array> {
  const { systemLogs: logs } = deps;
  try {
    if (query.file !== undefined) {
      yield* wholeFile(deps, [query.file.replace(/^\/+/, "")], signal);
      return;
    }
    const units: string[] = [];
    const others: string[] = [];
    for (const service of query.services) {
      ((await logs.hasUnit(service, { signal })) ? units : others).push(service);
    }
    if (units.length > 0) yield* logs.journal(journalArguments(query, units), { signal });
    for (const service of others) {
      yield* wholeFile(deps, [service, `${service}.log`, `${service}/${service}.log`], signal);
    }
  } catch (error) {
    if (!signal.aborted) yield `\n${messageOf(error)}\n`;
  }
}

/** The first of these that is a file. */
async function* wholeFile({ systemLogs: logs }: ApiDeps, paths: readonly string[], signal: AbortSignal) {
  for (const path of paths) {
    const file = await logs.look(path);
    if (file?.kind !== "file") continue;
    yield* logs.read(path, { from: 0, to: file.size }, { signal });
    return;
  }
  yield `no logs found for ${paths[0]}\n`;
}

function listing(entries: readonly LogEntry[]): string {
  const lines = entries.map(({ name, isDirectory }) => {
    const shown = `${name}${isDirectory ? "/" : ""}`;
    return `<a href="${encodeURIComponent(name)}${isDirectory ? "/" : ""}">${escaped(shown)}</a>\n`;
  });
  return `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${lines.join("")}</pre>\n`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&#34;");
}

function last(path: string): string {
  return encodeURIComponent(path.split("/").at(-1) ?? "");
}

function typeOf(path: string): string {
  if (/\.(gz|tgz)$/.test(path)) return "application/gzip";
  return /\.(xz|bz2|zst|journal)$/.test(path) ? "application/octet-stream" : "text/plain; charset=utf-8";
}
