import type { Abortable } from "../../lib/abort.ts";
import { type FieldError, forbidden } from "../status/field-error.ts";
import { expired, invalidObject } from "../status/status-error.ts";
import type { OperationDeps, Target } from "./context.ts";
import { parseRevision, untilRevision } from "./revisions.ts";
import { parseSelection, type SelectionQuery } from "./selection.ts";
import { endedWatch, type Watch, WatchStream } from "./watch-stream.ts";

/** What a watch is asked for. */
export interface WatchRequest extends SelectionQuery {
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: string;
  readonly sendInitialEvents?: boolean;
  readonly allowWatchBookmarks?: boolean;
  readonly timeoutSeconds?: number;
}

/** A watch without a time limit lasts between this and twice as long, in milliseconds. */
const SHORTEST_MS = 1_800_000;

/**
 * Follows the selected objects. Resolves when the watch has begun: nothing that happens later is missed. Rejects with
 * `StatusError` if the request is wrong. The watch ends when its time is over, when the signal aborts, or when it is
 * closed.
 */
export async function watchObjects(
  deps: OperationDeps,
  target: Target,
  { signal, ...request }: Abortable & WatchRequest,
): Promise<Watch> {
  checkWatchOptions(request);
  const selection = parseSelection(target, request);
  const wanted = parseRevision(request.resourceVersion) ?? 0;
  if (wanted > 0) await untilRevision(deps, wanted, { signal });
  const { store } = deps;
  const { collection } = target.kind;
  const sendsAll = request.sendInitialEvents ?? wanted === 0;
  const from = sendsAll || wanted === 0 ? store.revision : wanted;
  // A list that was handed out stays as it is: it is looked through while the client reads.
  const objects = sendsAll ? store.list(collection) : [];
  const queue = store.watch(collection, from);
  if (queue === undefined)
    return endedWatch(expired(`too old resource version: ${wanted} (${store.oldest(collection)})`).status);
  const begin = { objects, ...(request.sendInitialEvents === true && { endMark: from }) };
  const limitMs = timeLimit(deps, request.timeoutSeconds);
  const isMarked = request.allowWatchBookmarks === true;
  return new WatchStream({ ...deps, queue, selection }, { begin, limitMs, isMarked }, signal);
}

function timeLimit({ random }: OperationDeps, seconds: number | undefined): number {
  return seconds === undefined || seconds <= 0 ? SHORTEST_MS * (1 + random()) : seconds * 1000;
}

const LIST_OPTIONS = { group: "meta.k8s.io", kind: "ListOptions" };

function checkWatchOptions({ sendInitialEvents, resourceVersionMatch, allowWatchBookmarks }: WatchRequest): void {
  const errors: FieldError[] = [];
  if (sendInitialEvents === undefined) {
    if (resourceVersionMatch !== undefined) {
      const message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
      errors.push(forbidden("resourceVersionMatch", message));
    }
  } else {
    if (resourceVersionMatch !== "NotOlderThan") {
      const message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
      errors.push(forbidden("resourceVersionMatch", message));
    }
    if (sendInitialEvents && allowWatchBookmarks !== true) {
      errors.push(forbidden("allowWatchBookmarks", "sendInitialEvents requires allowWatchBookmarks"));
    }
  }
  if (errors.length > 0) throw invalidObject(LIST_OPTIONS, "", errors);
}
