import { createHash } from "node:crypto";
import { type Abortable, isAborted, TimeLimitError, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Live } from "../lib/live.ts";
import { decodeManifest, type ManifestProblem } from "./decode.ts";
import { type ManifestContent, withLastGood } from "./last-good.ts";
import { PendingChanges } from "./pending-changes.ts";
import { Reports } from "./reports.ts";
import { type DocumentParser, MOST_MANIFEST_BYTES, type Snapshot, type SourceProblem } from "./snapshot.ts";

/** Header values by name; a header may be sent several times. */
export type RequestHeaders = Readonly<Record<string, readonly string[]>>;

/** The response to a GET: the text with its ETag, or that it is unchanged. */
export type ManifestAnswer =
  | { readonly kind: "unchanged" }
  | { readonly kind: "content"; readonly body: string; readonly etag: string };

/** Gets a manifest; rejects for anything but a complete response with status 200 or 304. See `fetchManifest` of adapters/net/http-get.ts. */
export type FetchManifest = (
  url: string,
  options: Abortable & { readonly headers: RequestHeaders; readonly etag: string; readonly maxBytes: number },
) => Promise<ManifestAnswer>;

export interface UrlSourceDeps {
  readonly clock: Clock;
  readonly parse: DocumentParser;
  readonly fetchManifest: FetchManifest;
  publish(snapshot: Snapshot): void;
  report(problem: SourceProblem): void;
}

export interface UrlSourceOptions {
  /** Empty for none. */
  readonly url: string;
  readonly headers: RequestHeaders;
  readonly nodeName: string;
  /** With an API server manifests contain only pods; see `DecodeOptions`. */
  readonly hasApiServer?: boolean;
  readonly checkFrequencyMs: number;
}

interface KnownContent {
  readonly request: string;
  readonly etag: string;
  readonly digest: string;
  readonly problems: readonly ManifestProblem[];
}

const NOTHING: ManifestContent = { pods: [], objects: [] };
const UNKNOWN: KnownContent = { request: "", etag: "", digest: "", problems: [] };

/** Timeout of a request in milliseconds, as in Kubernetes. */
const REQUEST_LIMIT_MS = 10_000;

/**
 * Static pods of a URL, fetched every `checkFrequencyMs` and at once after a change of the options. Publishes a snapshot
 * at the first valid response and whenever the content changes; anything else keeps the last valid pods.
 */
export class UrlSource {
  private readonly pending = new PendingChanges();
  private readonly reports: Reports;
  private content: ManifestContent = NOTHING;
  private isPublished = false;
  /** ETag of the response that `content` comes from. */
  private known: KnownContent = UNKNOWN;

  constructor(
    private readonly deps: UrlSourceDeps,
    private readonly options: Live<UrlSourceOptions>,
  ) {
    this.reports = new Reports((problem) => deps.report(problem));
  }

  /** Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.options.onChange(() => this.pending.add({ kind: "rescan", name: "" }), { signal });
    try {
      while (!signal.aborted) {
        this.pending.take();
        await this.check(signal);
        await this.pending.wait(this.deps.clock, this.options.current.checkFrequencyMs, signal);
      }
    } catch (error) {
      if (!isAborted(error, signal)) throw error;
    }
  }

  private async check(signal: AbortSignal): Promise<void> {
    const options = this.options.current;
    const request = JSON.stringify([options.url, options.headers, options.nodeName]);
    if (request !== this.known.request) this.known = { ...UNKNOWN, request };
    if (options.url === "") return this.take(NOTHING);
    const file = withoutPassword(options.url);
    try {
      const answer = await this.fetch(options, signal);
      if (answer.kind === "content") {
        const digest = createHash("sha256").update(answer.body).digest("hex");
        const isSame = digest === this.known.digest;
        const problems = isSame ? this.known.problems : await this.decode(answer.body, options, signal);
        this.known = { request, etag: answer.etag, digest, problems };
      }
      this.reports.set(file, this.known.problems);
    } catch (error) {
      if (signal.aborted) throw error;
      this.reports.set(file, [{ message: describe(error) }]);
    }
  }

  private fetch({ url, headers }: UrlSourceOptions, signal: AbortSignal): Promise<ManifestAnswer> {
    const limit = { clock: this.deps.clock, ms: REQUEST_LIMIT_MS };
    const { etag } = this.known;
    return withScope([signal], limit, (limited) =>
      this.deps.fetchManifest(url, { headers, etag, maxBytes: MOST_MANIFEST_BYTES, signal: limited }),
    );
  }

  /** Decodes a new text and reports its problems. */
  private async decode(
    body: string,
    options: UrlSourceOptions,
    signal: AbortSignal,
  ): Promise<readonly ManifestProblem[]> {
    if (body.trim() === "") {
      this.take(NOTHING);
      return [];
    }
    const origin = { source: "http", location: options.url, nodeName: options.nodeName } as const;
    const { hasApiServer = false } = options;
    const decoded = await decodeManifest(body, origin, { parse: this.deps.parse, signal, hasApiServer });
    // Nothing valid in the first response: an empty snapshot would stop pods that may still be desired.
    const isUseless =
      decoded.pods.length + decoded.objects.length === 0 && decoded.problems.length > 0 && !this.isPublished;
    if (!isUseless) this.take(withLastGood(decoded, this.content));
    return decoded.problems;
  }

  private take(content: ManifestContent): void {
    const all = ({ pods, objects }: ManifestContent): readonly unknown[] => [...pods, ...objects];
    const [before, after] = [all(this.content), all(content)];
    const isSame = after.length === before.length && after.every((entry, at) => entry === before[at]);
    if (this.isPublished && isSame) return;
    this.content = content;
    this.isPublished = true;
    this.deps.publish({ source: "http", ...content, isIncomplete: false });
  }
}

function describe(error: unknown): string {
  if (error instanceof TimeLimitError) return `no complete answer within ${REQUEST_LIMIT_MS / 1000} s`;
  return messageOf(error);
}

/** The URL without its credentials, for logs. */
function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return url;
  const parsed = new URL(url);
  parsed.username = "";
  parsed.password = "";
  return parsed.href;
}
