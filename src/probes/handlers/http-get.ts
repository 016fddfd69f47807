import { followRedirects, isSameHost } from "../../adapters/net/http-redirects.ts";
import { ProbeNetError } from "../../adapters/net/probe-error.ts";
import { TimeLimitError } from "../../lib/abort.ts";
import { gitVersion } from "../../lib/version.ts";
import type { HTTPGetAction } from "../../model/generated/types.ts";
import { type HttpActionFacts, type HttpRequest, httpActionRequest, urlOf } from "../../model/http-action.ts";
import { failed, type ProbeHandler, probeUserAgent, SUCCESS, type Verdict } from "./handler.ts";

const userAgent = probeUserAgent(gitVersion);

/** Cache of the last request of each probe, valid for one pod IP. */
const known = new WeakMap<HTTPGetAction, { podIp: string; request: HttpRequest }>();

function requestFor(action: HTTPGetAction, facts: HttpActionFacts): HttpRequest {
  const before = known.get(action);
  if (before?.podIp === facts.podIp) return before.request;
  const request = httpActionRequest(action, facts);
  known.set(action, { podIp: facts.podIp, request });
  return request;
}

/** Sends a GET request; status 200 to 399 is a success, with a warning for a redirect that was not followed. */
export const httpGet: ProbeHandler = {
  name: "httpGet",
  async run({ net }, probe, { target, signal }): Promise<Verdict> {
    if (probe.httpGet === undefined) throw new Error("http probe: action is not set");
    const { podIp, container } = target;
    const request = requestFor(probe.httpGet, { podIp, container, userAgent });
    try {
      const { status, body } = await followRedirects(net.http, request, { signal, mayFollow: isSameHost });
      if (status < 200 || status >= 400) return failed(`HTTP probe failed with statuscode: ${status}`);
      if (status < 300) return SUCCESS;
      return { result: "warning", output: `Probe terminated redirects, Response body: ${body}` };
    } catch (error) {
      const isLate = error instanceof TimeLimitError;
      if (!isLate && !(error instanceof ProbeNetError)) throw error;
      const what = isLate ? "context deadline exceeded" : error.message;
      const late = signal.aborted ? " (Client.Timeout exceeded while awaiting headers)" : "";
      return failed(`Get "${urlOf(request)}": ${what}${late}`);
    }
  },
};
