import type { RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import { CodedError } from "../lib/errors.ts";
import { refuse } from "./gate.ts";
import type { PageDeps } from "./page-deps.ts";
import { NO_SNIFF } from "./static-routes.ts";

/** The most lines before the present end that a client gets. */
const MOST_LINES = 100_000;
const LONGEST_COMMAND = 4096;

/** The log of a container: its last lines, what it writes from then on, or that of its previous instance. */
export function logAnswer({ view, logs }: PageDeps, { params, query, signal }: RouteRequest): RouteAnswer {
  const { uid = "", container = "" } = params;
  const wanted = query.get("tail") ?? "1000";
  if (!/^\d{1,9}$/.test(wanted)) return refuse(400, "tail must be a number of lines");
  const which = { container, previous: query.get("previous") === "true" };
  const known = view.explain(uid)?.containers.find(({ name }) => name === container);
  if (known === undefined) return refuse(404, "there is no such container");
  const path = view.logPath(uid, which);
  if (path === undefined) {
    const why = [known.reason, known.message].filter((text) => text !== "").join(": ");
    const none = which.previous ? "the container has no previous instance with a log" : "the container has no log yet";
    return refuse(404, `${none}${why === "" || which.previous ? "" : ` (${why})`}`);
  }
  const follow = {
    ended: () => {
      const now = view.explain(uid)?.containers.find(({ name }) => name === container);
      return now?.state !== "running" || view.logPath(uid, which) !== path;
    },
    onChange: view.onChange.bind(view),
  };
  const body = logs.read(
    {
      path,
      tail: Math.min(MOST_LINES, Number(wanted)),
      timestamps: query.get("timestamps") === "true",
      ...(query.get("follow") === "true" && !which.previous && { follow }),
    },
    { signal },
  );
  return { status: 200, headers: { "Cache-Control": "no-store", ...NO_SNIFF }, body: withoutLateErrors(body) };
}

/** After the first byte the status is sent: an error is appended to the body. */
async function* withoutLateErrors(body: AsyncIterable<Uint8Array>): AsyncGenerator<string | Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    yield `${error.message}\n`;
  }
}

/** A terminal in a container, over the client's WebSocket. */
export async function execAnswer(deps: PageDeps, request: RouteRequest): Promise<RouteAnswer> {
  const { params, query, headers, signal } = request;
  const { uid = "", container = "" } = params;
  const command = query.getAll("command");
  if (command.length === 0 || command.join(" ").length > LONGEST_COMMAND) return refuse(400, "a command is required");
  const pod = deps.streams.podOf(uid);
  const known = deps.view.explain(uid)?.containers.find(({ name }) => name === container);
  if (pod === undefined || known === undefined) return refuse(404, "there is no such container");
  if (known.state !== "running") return refuse(409, "the container is not running");
  // Last: a script that is refused a WebSocket asks without one for the reason.
  if ((headers["upgrade"] ?? "").toLowerCase() !== "websocket") return refuse(426, "a WebSocket is required");
  request.expectUpgrade?.();
  const streams = { stdin: true, stdout: true, stderr: false, tty: true };
  try {
    const upgradeTo = await deps.streams.exec(pod, { container, command, ...streams }, { signal });
    const { namespace, name } = pod.metadata;
    deps.log.info("Opened a terminal in a container from the page", { pod: `${namespace}/${name}`, container });
    return { status: 101, body: "", upgradeTo };
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    return refuse(error.code === "NotFound" ? 404 : 500, error.message);
  }
}
