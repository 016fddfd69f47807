import type { RouteRequest } from "./http-route.ts";

const TOKEN_PROTOCOL = "base64url.bearer.authorization.k8s.io.";

/** The bearer token of a request, also as a WebSocket subprotocol; empty if it is malformed. */
export function bearerToken(headers: RouteRequest["headers"]): string | undefined {
  const match = /^bearer +(\S.*)$/i.exec(headers["authorization"]?.trim() ?? "");
  if (match !== null) return match[1] ?? "";
  const protocols = (headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
  const tokens = protocols.filter((protocol) => protocol.startsWith(TOKEN_PROTOCOL));
  const [token] = tokens;
  // A subprotocol beside the token is required.
  if (token === undefined || protocols.length === tokens.length) return undefined;
  const encoded = token.slice(TOKEN_PROTOCOL.length);
  if (tokens.length > 1 || !/^[\w-]+$/.test(encoded)) return "";
  return Buffer.from(encoded, "base64url").toString("utf8");
}
