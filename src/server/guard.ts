import type { Guard } from "../adapters/net/http-dispatch.ts";
import { type RouteAnswer, type RouteRequest, textAnswer } from "../adapters/net/http-route.ts";
import { isAborted } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { accessOf } from "./access.ts";
import type { Authenticator, User } from "./authenticate.ts";
import type { Authorizer } from "./authorize.ts";

/** Authenticates and authorizes a request before anything else, with the status codes and texts of Kubernetes. */
export function accessGuard(deps: {
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly authorizer: Pick<Authorizer, "isAllowed">;
  readonly log: Logger;
}): Guard {
  return async (request) => {
    const user = await deps.authenticator.authenticate(request);
    if (user === undefined) return textAnswer(401, "Unauthorized");
    return authorize(deps, user, request);
  };
}

async function authorize(
  { authorizer, log }: { authorizer: Pick<Authorizer, "isAllowed">; log: Logger },
  user: User,
  { method, path, signal }: RouteRequest,
): Promise<RouteAnswer | undefined> {
  const { verb, subresources } = accessOf(method, path);
  const what = `(user=${user.name}, verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(" ")}])`;
  try {
    for (const subresource of subresources) {
      if (await authorizer.isAllowed({ user, verb, subresource }, { signal })) return undefined;
    }
  } catch (error) {
    if (isAborted(error, signal)) throw error;
    log.warn("Failed to authorize request", { user: user.name, verb, error: messageOf(error) });
    return textAnswer(500, `Authorization error ${what}`);
  }
  return textAnswer(403, `Forbidden ${what}`);
}
