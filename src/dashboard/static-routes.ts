import type { HttpRoute, RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import { textAnswer } from "../adapters/net/http-route.ts";
import type { PageAssets } from "./page-deps.ts";

/** Nothing from elsewhere, no inline script or style, not in a frame, no text as markup. */
const POLICY = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
].join("; ");

/** Text of a pod is never anything else to a browser. */
export const NO_SNIFF = { "X-Content-Type-Options": "nosniff" } as const;

const HEADERS = {
  "Content-Security-Policy": POLICY,
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  ...NO_SNIFF,
} as const;

const NOT_BUILT = "The page is not part of this build: run `npm run build`.\n";

/** The page itself. It has no data, so everyone who reaches the port may load it. */
export function staticRoutes(assets: PageAssets): readonly HttpRoute[] {
  return [
    { path: "/", methods: ["GET", "HEAD"], handle: (request) => assetAnswer(assets, "index.html", request) },
    {
      path: "/page/assets/:name",
      methods: ["GET"],
      handle: (request) => assetAnswer(assets, request.params["name"] ?? "", request),
    },
  ];
}

async function assetAnswer(assets: PageAssets, name: string, { headers }: RouteRequest): Promise<RouteAnswer> {
  const gzip = /\bgzip\b/.test(headers["accept-encoding"] ?? "");
  const found = await assets.read(name, { gzip });
  if (found === undefined) return name === "index.html" ? textAnswer(503, NOT_BUILT) : textAnswer(404, "not found\n");
  // Names of assets have a hash of their content; the page itself names the newest ones.
  const caching = name === "index.html" ? "no-cache" : "public, max-age=31536000, immutable";
  return {
    status: 200,
    type: found.type,
    headers: {
      ...HEADERS,
      "Cache-Control": caching,
      Vary: "Accept-Encoding",
      ...(found.isCompressed && { "Content-Encoding": "gzip" }),
    },
    body: found.bytes,
  };
}
