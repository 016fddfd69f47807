import { AbortScope, TimeLimitError } from "../../lib/abort.ts";
import { badRequest, tooLargeRevision } from "../status/status-error.ts";
import type { OperationDeps } from "./context.ts";

/** How long a request waits for a revision that is yet to come, in milliseconds; as in Kubernetes. */
const WAIT_MS = 3000;

/** A revision of a query; undefined if it is empty. Throws `StatusError`. */
export function parseRevision(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  const revision = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(revision)) return revision;
  const quoted = JSON.stringify(text);
  const why = `strconv.ParseUint: parsing ${quoted}: invalid syntax`;
  throw badRequest(`invalid resource version: resourceVersion: Invalid value: ${quoted}: ${why}`);
}

/** Resolves when the store has reached a revision. Rejects with `StatusError` if that takes too long. */
export async function untilRevision(
  { store, clock }: OperationDeps,
  revision: number,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  if (store.revision >= revision) return;
  const scope = new AbortScope([signal], { clock, ms: WAIT_MS });
  const waiting: { cancel?: () => void } = {};
  try {
    await new Promise<void>((resolve, reject) => {
      const watch = store.onRevision(() => {
        if (store.revision >= revision) resolve();
      });
      waiting.cancel = () => watch.cancel();
      const onAbort = (): void => reject(scope.signal.reason as Error);
      scope.signal.addEventListener("abort", onAbort, { once: true });
      if (scope.signal.aborted) onAbort();
    });
  } catch (error) {
    if (error instanceof TimeLimitError) throw tooLargeRevision(revision, store.revision);
    throw error;
  } finally {
    waiting.cancel?.();
    scope.dispose();
  }
}
