import { ApiReviews } from "../adapters/kubeapi/reviews.ts";
import type { Guard } from "../adapters/net/http-dispatch.ts";
import type { AgentOptions } from "../config/index.ts";
import { select } from "../lib/live.ts";
import { Authenticator } from "./authenticate.ts";
import { Authorizer } from "./authorize.ts";
import type { ServerDeps } from "./compose.ts";
import { accessGuard } from "./guard.ts";

/** Authentication and authorization of the main port, as configured. */
export function agentGuard({ clock, log, store, connection, nodeName }: ServerDeps): Guard {
  const options = store.current;
  const reviews = connection && new ApiReviews({ api: connection.clients.reviews, clock }, nodeName);
  const reviewsTokens = options.webhookAuthentication && reviews !== undefined;
  if (!reviewsTokens && !options.anonymousAuth && options.clientCAFile === "") {
    log.info("No request to the main port can be authenticated: set a client CA file or a kubeconfig");
  }
  if (isOpenToNetwork(options)) {
    log.warn("The main port allows every unauthenticated request, also to run commands in containers", {
      address: options.address,
      port: options.port,
      anonymousAuth: options.anonymousAuth,
      authorizationMode: options.authorizationMode,
    });
  }
  return accessGuard({
    log,
    authenticator: new Authenticator(
      { clock, log, reviewer: reviewsTokens ? reviews : undefined },
      select(store.live("webhookAuthenticationCacheTTL"), (o) => ({
        anonymous: options.anonymousAuth,
        tokenTtlMs: o.webhookAuthenticationCacheTTL,
      })),
    ),
    authorizer: new Authorizer(
      { clock, reviewer: reviews },
      select(store.live("authorizedTTL", "unauthorizedTTL"), (o) => ({
        mode: options.authorizationMode,
        allowedTtlMs: o.authorizedTTL,
        deniedTtlMs: o.unauthorizedTTL,
      })),
    ),
  });
}

/** True if whoever reaches the machine may do everything on the main port. Pure. */
export function isOpenToNetwork(
  options: Pick<AgentOptions, "address" | "anonymousAuth" | "authorizationMode">,
): boolean {
  return options.anonymousAuth && options.authorizationMode === "AlwaysAllow" && !isLoopback(options.address);
}

/** True if only this machine reaches the address. Pure. */
export function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}
