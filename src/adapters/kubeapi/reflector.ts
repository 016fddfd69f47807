import { type Abortable, TimeLimitError, withScope } from "../../lib/abort.ts";
import { Backoff } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import { ApiError, type KubeApi, type KubeObject, type Selection } from "./port.ts";
import { type ObjectChange, ReflectorStore } from "./reflector-store.ts";
import type { Resource } from "./resources.ts";

export interface ReflectorDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  /** From 0 to below 1; `Math.random` unless a test gives its own. */
  readonly random?: () => number;
}

export interface ReflectorOptions<T> {
  readonly resource: Resource<T>;
  readonly select: Selection;
  /** `cached`: the first list may be a little old and costs the server little. `latest`: it is the newest state. */
  readonly firstList: "cached" | "latest";
  /** Page size; defaults to 500. */
  readonly pageSize?: number;
  /** Called for each change once, in order. Must not throw. */
  readonly onChange?: (change: ObjectChange<T>) => void;
  /** Called after each complete list and its changes, with the version of the list. */
  readonly onSync?: (version: string) => void;
  /** Called for each failed attempt; the reflector retries by itself. */
  readonly onError?: (error: ApiError) => void;
}

const PAGE_SIZE = 500;
/** The server ends a watch after five to ten minutes, spread so that not all come back at once. */
const WATCH_SECONDS = 300;
/** A watch that the server does not end by itself is ended this much later. */
const OVERTIME_MS = 30_000;
/** A watch that lived this long was a good one, in milliseconds. */
const GOOD_WATCH_MS = 1_000;

/**
 * Lists and watches the selected objects.
 *
 *   list ──► watch ──ends, cut──► watch from the last version
 *     ▲        └──410, or garbage twice at one version──┐
 *     └──────── relist, delivered as changes ◄───────────┘
 *
 * Every change is delivered once: repetitions are found by the version, an object replaced under its name by its UID.
 */
export class Reflector<T extends KubeObject> {
  private readonly store = new ReflectorStore<T>();
  private readonly backoff: Backoff;
  private readonly random: () => number;
  /** Where the next watch begins; undefined: list first. */
  private version: string | undefined;
  /** The newest version seen: no later list may be older. Empty: the newest there is; `"0"`: any. */
  private floor: string;
  private synced = false;
  /** Version of the last unreadable event; a second one there means that only a list gets past it. */
  private garbageAt: string | undefined;

  constructor(
    private readonly deps: ReflectorDeps,
    private readonly options: ReflectorOptions<T>,
  ) {
    this.random = deps.random ?? Math.random;
    this.backoff = new Backoff({ initialMs: 100, maxMs: 10_000, jitter: 0.5, random: this.random });
    this.floor = options.firstList === "cached" ? "0" : "";
  }

  /** By `namespace/name`, or name. */
  get objects(): ReadonlyMap<string, T> {
    return this.store.all;
  }

  /** True once a complete list was received. */
  get hasSynced(): boolean {
    return this.synced;
  }

  /** Lists and watches until the signal aborts. Only a bug makes it reject. */
  async run({ signal }: Abortable): Promise<void> {
    while (!signal.aborted) {
      let askedMs = 0;
      try {
        if (this.version === undefined) await this.list(signal);
        if (await this.follow(signal)) continue;
      } catch (error) {
        if (signal.aborted) return;
        askedMs = this.hear(error).retryAfterMs ?? 0;
      }
      await this.pause(askedMs, signal);
    }
  }

  /** At least as long as the server asked; spread, so that not every node comes back in the same moment. */
  private async pause(askedMs: number, signal: AbortSignal): Promise<void> {
    const ms = Math.max(askedMs * (1 + 0.5 * this.random()), this.backoff.next(this.deps.clock.now()));
    await this.deps.clock.sleep(ms, { signal }).catch(() => undefined);
  }

  private async list(signal: AbortSignal): Promise<void> {
    const { resource, select, pageSize = PAGE_SIZE } = this.options;
    const items: T[] = [];
    let version = "";
    let continueToken = "";
    do {
      const query = { ...select, resourceVersion: this.floor, limit: pageSize, continueToken };
      const page = await this.deps.api.list(resource, query, { signal });
      items.push(...page.items);
      version = page.resourceVersion;
      continueToken = page.continueToken;
    } while (continueToken !== "");
    if (version === "") throw new ApiError("Garbage", `${resource.kind}List: resourceVersion is missing`);
    const changes = this.store.replace(items);
    this.moveTo(version);
    this.synced = true;
    this.garbageAt = undefined;
    for (const change of changes) this.options.onChange?.(change);
    this.options.onSync?.(version);
  }

  /** One watch, to its end. True: the next one may begin at once. */
  private async follow(signal: AbortSignal): Promise<boolean> {
    const timeoutSeconds = Math.floor(WATCH_SECONDS * (1 + this.random()));
    const query = { ...this.options.select, resourceVersion: this.version ?? "", timeoutSeconds };
    const limit = { clock: this.deps.clock, ms: timeoutSeconds * 1000 + OVERTIME_MS };
    const began = this.deps.clock.now().mono;
    const versionBefore = this.version;
    await withScope([signal], limit, async (inner) => {
      for await (const event of await this.deps.api.watch(this.options.resource, query, { signal: inner })) {
        if (signal.aborted) return;
        const changes =
          event.type === "BOOKMARK"
            ? []
            : event.type === "DELETED"
              ? this.store.remove(event.object)
              : this.store.put(event.object);
        this.moveTo(event.resourceVersion);
        this.backoff.reset();
        for (const change of changes) this.options.onChange?.(change);
      }
    });
    const isGood = this.version !== versionBefore || this.deps.clock.now().mono - began >= GOOD_WATCH_MS;
    if (isGood) this.backoff.reset();
    return isGood;
  }

  private moveTo(version: string): void {
    this.version = version;
    this.floor = version;
  }

  /** Decides where to continue after a failure; anything but an `ApiError` is thrown. */
  private hear(error: unknown): ApiError {
    const isLate = error instanceof TimeLimitError;
    const failure = isLate ? new ApiError("Timeout", "watch did not end in time", { cause: error }) : error;
    if (!(failure instanceof ApiError)) throw failure;
    const wasListing = this.version === undefined;
    if (failure.code === "Gone") {
      this.version = undefined;
      // A list from our own version is too old, too: only the newest state helps.
      if (wasListing) this.floor = "";
    } else if (failure.httpStatus === 504 && wasListing) {
      // The server does not know our version yet, or never will: it was restored from a backup.
      this.floor = "";
    } else if (failure.code === "Garbage" && !wasListing) {
      if (this.garbageAt === this.version) this.version = undefined;
      else this.garbageAt = this.version;
    }
    this.options.onError?.(failure);
    return failure;
  }
}
