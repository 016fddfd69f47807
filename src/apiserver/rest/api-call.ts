import type { RouteRequest } from "../../adapters/net/http-route.ts";
import type { RequestUser } from "../kinds/kind.ts";

/** A request with its user. */
export interface ApiCall {
  readonly request: RouteRequest;
  readonly user: RequestUser;
  /** Sends a Warning header with the answer. */
  warn(text: string): void;
}
