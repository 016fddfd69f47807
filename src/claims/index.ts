export type { Claims } from "./claims.ts";
export { type ClaimRing, type ComposedClaims, composeClaims } from "./compose.ts";
