import { createPrivateKey, createPublicKey, type KeyObject, randomUUID, sign, verify } from "node:crypto";
import { PODS, SERVICE_ACCOUNTS } from "../../adapters/kubeapi/index.ts";
import type { Clock } from "../../lib/clock.ts";
import type { BoundObjectReference, ServiceAccount } from "../../model/generated/types.ts";
import type { ObjectReader, RequestUser } from "../kinds/kind.ts";
import { isTree } from "../schema/type-schema.ts";

export const ISSUER = "https://kubernetes.default.svc.cluster.local";
const MOST_SKEW_SECONDS = 10;

export interface AccountTokensDeps {
  readonly clock: Clock;
  readonly read: Pick<ObjectReader, "get">;
  /** ECDSA P-256, PEM. */
  readonly signingKey: string;
}

/** What a token is issued for. */
export interface TokenOrder {
  readonly account: ServiceAccount;
  readonly audiences: readonly string[];
  readonly seconds: number;
  readonly bound: BoundObjectReference | undefined;
}

/** Issues and reviews tokens of service accounts: signed JWTs that end with their account or pod. */
export class AccountTokens {
  private readonly key: KeyObject;
  private readonly publicKey: KeyObject;

  constructor(private readonly deps: AccountTokensDeps) {
    this.key = createPrivateKey(deps.signingKey);
    this.publicKey = createPublicKey(this.key);
  }

  /** A token and the time of its end in milliseconds since 1970. */
  issue({ account, audiences, seconds, bound }: TokenOrder): { readonly token: string; readonly expiresAt: number } {
    const now = Math.floor(this.deps.clock.now().wall / 1000);
    const { namespace = "", name = "", uid = "" } = account.metadata;
    const claims = {
      aud: audiences.length === 0 ? [ISSUER] : audiences,
      exp: now + seconds,
      iat: now,
      iss: ISSUER,
      jti: randomUUID(),
      "kubernetes.io": {
        namespace,
        ...(bound && { [bound.kind?.toLowerCase() ?? "pod"]: { name: bound.name ?? "", uid: bound.uid ?? "" } }),
        serviceaccount: { name, uid },
      },
      nbf: now,
      sub: `system:serviceaccount:${namespace}:${name}`,
    };
    return { token: this.signed(claims), expiresAt: (now + seconds) * 1000 };
  }

  /** The user of a token, with the audiences that it is for; undefined if it is not valid. */
  review(
    token: string,
    audiences: readonly string[],
  ): (RequestUser & { readonly audiences: readonly string[] }) | undefined {
    const claims = this.verified(token);
    if (claims === undefined) return undefined;
    const wanted = audiences.length === 0 ? [ISSUER] : audiences;
    const shared = textsOf(claims.aud).filter((audience) => wanted.includes(audience));
    const own = isTree(claims["kubernetes.io"]) ? claims["kubernetes.io"] : {};
    const account = named(own.serviceaccount);
    const namespace = typeof own.namespace === "string" ? own.namespace : "";
    const found = this.deps.read.get(SERVICE_ACCOUNTS, { namespace, name: account.name });
    if (shared.length === 0 || found?.metadata.uid !== account.uid) return undefined;
    const pod = own.pod === undefined ? undefined : named(own.pod);
    if (pod && this.deps.read.get(PODS, { namespace, name: pod.name })?.metadata.uid !== pod.uid) return undefined;
    const extra = pod && {
      "authentication.kubernetes.io/pod-name": [pod.name],
      "authentication.kubernetes.io/pod-uid": [pod.uid],
    };
    return {
      name: `system:serviceaccount:${namespace}:${account.name}`,
      uid: account.uid,
      groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
      ...(extra && { extra }),
      audiences: shared,
    };
  }

  private signed(claims: object): string {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const text = `${part({ alg: "ES256", typ: "JWT" })}.${part(claims)}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.key, dsaEncoding: "ieee-p1363" });
    return `${text}.${signature.toString("base64url")}`;
  }

  private verified(token: string): Record<string, unknown> | undefined {
    const parts = token.split(".");
    const [head = "", body = "", signature = ""] = parts;
    if (parts.length !== 3) return undefined;
    const key = { key: this.publicKey, dsaEncoding: "ieee-p1363" } as const;
    if (!verify("sha256", Buffer.from(`${head}.${body}`), key, Buffer.from(signature, "base64url"))) return undefined;
    // Only we could have signed it.
    const claims: unknown = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
    if (!isTree(claims)) return undefined;
    const now = this.deps.clock.now().wall / 1000;
    const { exp, nbf, iss } = claims;
    const isCurrent = typeof exp === "number" && typeof nbf === "number" && now < exp && now > nbf - MOST_SKEW_SECONDS;
    return isCurrent && iss === ISSUER ? claims : undefined;
  }
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
}

function named(value: unknown): { readonly name: string; readonly uid: string } {
  const { name, uid } = isTree(value) ? value : { name: undefined, uid: undefined };
  return { name: typeof name === "string" ? name : "", uid: typeof uid === "string" ? uid : "" };
}
