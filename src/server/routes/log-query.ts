/** The parameters that make a request to `/logs/` a query. */
export const QUERY_NAMES = ["query", "sinceTime", "untilTime", "tailLines", "pattern", "boot"];

/** A validated query of the host's logs. */
export interface LogQuery {
  /** Units of the journal, or names of logs. */
  readonly services: readonly string[];
  /** A file below the root instead. */
  readonly file?: string;
  readonly since?: Date;
  readonly until?: Date;
  readonly tailLines?: number;
  readonly pattern?: string;
  readonly boot?: number;
}

/** Why a query is rejected: 400 if it cannot be parsed, 406 if it is invalid. */
export interface RefusedQuery {
  readonly refused: 400 | 406;
  readonly message: string;
}

const MOST_SERVICES = 4;
const MOST_LINES = 100_000;
const SERVICE = /^[a-zA-Z\-_.:0-9@]{1,256}$/;
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** Parses and validates a query. Pure. */
export function readLogQuery(query: URLSearchParams): LogQuery | RefusedQuery {
  const unreadable = unreadablePart(query);
  if (unreadable !== undefined) return { refused: 400, message: unreadable };
  const words = query.getAll("query");
  const files = words.filter((word) => /[/\\]/.test(word));
  const services = words.filter((word) => !/[/\\]/.test(word));
  const since = time(query.get("sinceTime"));
  const until = time(query.get("untilTime"));
  const tailLines = number(query.get("tailLines"));
  const boot = number(query.get("boot"));
  const pattern = query.get("pattern") || undefined;
  const [file] = files;
  const wanted: LogQuery = {
    services,
    ...(file === undefined ? {} : { file }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(boot === undefined ? {} : { boot }),
    ...(pattern === undefined ? {} : { pattern }),
  };
  const broken = brokenRule(wanted, files);
  return broken === undefined ? wanted : { refused: 406, message: broken };
}

function unreadablePart(query: URLSearchParams): string | undefined {
  const words = query.getAll("query");
  if (words.length === 0 || words.some((word) => word.trim() === "")) return "query cannot be empty";
  for (const name of ["sinceTime", "untilTime"]) {
    const text = query.get(name);
    const isTime = text === null || text === "" || (RFC3339.test(text) && !Number.isNaN(Date.parse(text)));
    if (!isTime) return `${name}: ${JSON.stringify(text)} is no RFC 3339 time`;
  }
  for (const name of ["tailLines", "boot"]) {
    const text = query.get(name);
    if (text !== null && text !== "" && !/^-?\d{1,9}$/.test(text))
      return `${name}: ${JSON.stringify(text)} is no integer`;
  }
  return undefined;
}

function brokenRule({ services, file, since, until, tailLines, boot, pattern }: LogQuery, files: readonly string[]) {
  const wrong = services.find((service) => !SERVICE.test(service));
  if (wrong !== undefined) return `query: ${JSON.stringify(wrong)} is no name of a service`;
  if (services.length > MOST_SERVICES) return `query: at most ${MOST_SERVICES} services`;
  if (files.length > 1) return "query: at most one file";
  if (file !== undefined && services.length > 0) return "query: either a file or services, not both";
  if (file !== undefined && (since ?? until ?? tailLines ?? boot ?? pattern) !== undefined) {
    return "query: a file cannot be combined with other options";
  }
  if (file !== undefined && file.split(/[/\\]/).includes(".."))
    return "query: the file must be below the log directory";
  if (since !== undefined && until !== undefined && since > until) return "untilTime: must not be before sinceTime";
  if (tailLines !== undefined && (tailLines < 0 || tailLines > MOST_LINES)) return `tailLines: from 0 to ${MOST_LINES}`;
  if (boot !== undefined && boot > 0) return "boot: must not be over 0";
  if (pattern !== undefined && !isPattern(pattern))
    return `pattern: ${JSON.stringify(pattern)} is no regular expression`;
  return undefined;
}

/** The arguments of journalctl for a query. Pure. */
export function journalArguments(
  { since, until, tailLines, pattern, boot }: LogQuery,
  units: readonly string[],
): string[] {
  return [
    ...["--utc", "--no-pager", "--output=short-precise"],
    ...(since === undefined ? [] : [`--since=${journalTime(since)}`]),
    ...(until === undefined ? [] : [`--until=${journalTime(until)}`]),
    ...(tailLines === undefined ? [] : ["--pager-end", `--lines=${tailLines}`]),
    ...units.map((unit) => `--unit=${unit}`),
    ...(pattern === undefined ? [] : [`--grep=${pattern}`]),
    ...(boot === undefined ? [] : ["--boot", String(boot)]),
  ];
}

function journalTime(time: Date): string {
  return time.toISOString().slice(0, 19).replace("T", " ");
}

function time(text: string | null): Date | undefined {
  return text ? new Date(text) : undefined;
}

function number(text: string | null): number | undefined {
  return text ? Number(text) : undefined;
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
