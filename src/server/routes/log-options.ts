import { type RouteAnswer, textAnswer } from "../../adapters/net/http-route.ts";

/** The parameters of `/containerLogs`, checked. */
export interface LogOptions {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly tail?: number;
  readonly sinceSeconds?: number;
  readonly sinceMs?: number;
  readonly limitBytes?: number;
  readonly stream: "All" | "Stdout" | "Stderr";
}

/** An invalid parameter. 400: it cannot be parsed; 422: its value is out of range. */
class Refused extends Error {
  constructor(
    readonly status: 400 | 422,
    message: string,
  ) {
    super(message);
  }
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** Parses the query; returns the answer for an invalid one. Pure. */
export function readLogOptions(query: URLSearchParams): LogOptions | RouteAnswer {
  try {
    const options = decode(query);
    check(options);
    return options;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return textAnswer(error.status, `{"message": ${JSON.stringify(error.message)}}\n`);
  }
}

function decode(query: URLSearchParams): LogOptions {
  const sinceTime = value(query, "sinceTime");
  if (sinceTime !== undefined && (!RFC3339.test(sinceTime) || Number.isNaN(Date.parse(sinceTime)))) {
    throw new Refused(400, `sinceTime: ${JSON.stringify(sinceTime)} is no RFC 3339 time`);
  }
  const legacyTail = value(query, "tail");
  const tail = integer(query, "tailLines") ?? (legacyTail === "all" ? undefined : integer(query, "tail"));
  const sinceSeconds = integer(query, "sinceSeconds");
  const limitBytes = integer(query, "limitBytes");
  const stream = value(query, "stream") ?? "All";
  if (stream !== "All" && stream !== "Stdout" && stream !== "Stderr") {
    throw new Refused(422, `stream: ${JSON.stringify(stream)} is none of All, Stdout, Stderr`);
  }
  return {
    follow: bool(query, "follow"),
    previous: bool(query, "previous"),
    timestamps: bool(query, "timestamps"),
    ...(tail === undefined ? {} : { tail }),
    ...(sinceSeconds === undefined ? {} : { sinceSeconds }),
    ...(sinceTime === undefined ? {} : { sinceMs: Date.parse(sinceTime) }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    stream,
  };
}

function check({ tail, sinceSeconds, sinceMs, limitBytes, stream }: LogOptions): void {
  if (tail !== undefined && tail < 0) throw new Refused(422, "tailLines: must be greater than or equal to 0");
  if (limitBytes !== undefined && limitBytes < 1) throw new Refused(422, "limitBytes: must be greater than 0");
  if (sinceSeconds !== undefined && sinceMs !== undefined) {
    throw new Refused(422, "at most one of sinceTime or sinceSeconds may be specified");
  }
  if (sinceSeconds !== undefined && sinceSeconds < 1) throw new Refused(422, "sinceSeconds: must be greater than 0");
  if (tail !== undefined && stream !== "All") {
    throw new Refused(422, "tailLines: cannot be used together with a single stream");
  }
}

/** The first value; undefined if it is empty. */
function value(query: URLSearchParams, name: string): string | undefined {
  return query.get(name) || undefined;
}

function integer(query: URLSearchParams, name: string): number | undefined {
  const text = value(query, name);
  if (text === undefined) return undefined;
  const number = Number(text);
  if (!/^[+-]?\d+$/.test(text) || !Number.isSafeInteger(number)) {
    throw new Refused(400, `${name}: ${JSON.stringify(text)} is no integer`);
  }
  return number;
}

/** Decodes as the API server does: everything but `false` and `0` is true, also a bare name. */
function bool(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  return text !== null && text !== "0" && text.toLowerCase() !== "false";
}
