import type { RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import { jsonAnswer } from "../adapters/net/http-route.ts";
import { nearest } from "../lib/nearest.ts";
import type { ContainerSummary, PodExplanation } from "../model/step.ts";
import type { AgentView, LogOpener, LogRequest, Refusal } from "./agent-view.ts";

/** An error answer, with suggestions if there are any. */
export function refuse(status: number, message: string, near: readonly string[] = []): RouteAnswer {
  return jsonAnswer(status, { message, near } satisfies Refusal);
}

/** The log of a container of this pod, by the query. */
export function containerLog(
  deps: { view: AgentView; logs: LogOpener },
  pod: PodExplanation,
  { query, signal }: RouteRequest,
): RouteAnswer {
  const tail = query.get("tail");
  if (tail !== null && !/^\d{1,9}$/.test(tail)) return refuse(400, `tail must be a number of lines, not "${tail}"`);
  const chosen = chooseContainer(pod, query.get("container"));
  if ("status" in chosen) return chosen;
  const which = { container: chosen.name, previous: query.get("previous") === "true" };
  const path = deps.view.logPath(pod.uid, which);
  if (path === undefined) return refuse(400, whyNoLog(chosen, which.previous));
  const follow: LogRequest["follow"] = {
    ended: () => {
      const now = deps.view.explain(pod.uid)?.containers.find(({ name }) => name === chosen.name);
      return now?.state !== "running" || deps.view.logPath(pod.uid, which) !== path;
    },
    onChange: (fn, options) => deps.view.onChange(fn, options),
  };
  const request: LogRequest = {
    path,
    ...(tail === null ? {} : { tail: Number(tail) }),
    ...(query.get("follow") === "true" && !which.previous ? { follow } : {}),
  };
  return { status: 200, type: "text/plain", body: deps.logs.read(request, { signal }) };
}

/** The named container, or the only regular one. */
export function chooseContainer(pod: PodExplanation, wanted: string | null): ContainerSummary | RouteAnswer {
  const names = pod.containers.map(({ name }) => name);
  if (wanted !== null) {
    const found = pod.containers.find(({ name }) => name === wanted);
    if (found !== undefined) return found;
    const near = nearest(wanted, names);
    return refuse(404, `pod ${pod.name} has no container "${wanted}"`, near.length > 0 ? near : names);
  }
  const regular = pod.containers.filter(({ kind }) => kind === "regular");
  const [only] = regular;
  if (only !== undefined && regular.length === 1) return only;
  if (only === undefined) return refuse(400, `pod ${pod.name} has no container yet`);
  return refuse(400, `pod ${pod.name} has ${regular.length} containers; choose one with -c NAME`, names);
}

function whyNoLog(container: ContainerSummary, isPrevious: boolean): string {
  if (isPrevious) return `container ${container.name} has no previous instance with a log`;
  const why = [container.reason, container.message].filter((text) => text !== "").join(": ");
  const state = container.state === "waiting" ? "is waiting to start" : "has no log";
  return `container ${container.name} ${state}${why === "" ? "" : ` (${why})`}`;
}
