import { PODS, SERVICE_ACCOUNTS } from "../../adapters/kubeapi/index.ts";
import type { RouteAnswer } from "../../adapters/net/http-route.ts";
import type { Pod, ServiceAccount, TokenRequest } from "../../model/generated/types.ts";
import type { AccountTokens } from "../auth/account-tokens.ts";
import { ISSUER } from "../auth/account-tokens.ts";
import { type OperationDeps, type Target, timeText } from "../operations/context.ts";
import type { ApiCall } from "../rest/api-call.ts";
import { readParsedBody } from "../rest/read-body.ts";
import type { Subresource } from "../rest/subresource.ts";
import { decodeTree, TypeMismatch } from "../schema/decode-tree.ts";
import { invalid } from "../status/field-error.ts";
import { badRequest, conflict, invalidObject, methodNotAllowed, notFound } from "../status/status-error.ts";

const TOKEN_REQUEST = { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };
const DEFAULT_SECONDS = 3600;
const LEAST_SECONDS = 600;
const MOST_SECONDS = 2 ** 32;

/** `serviceaccounts/token`. */
export function tokenSubresource(deps: OperationDeps, tokens: AccountTokens): Subresource {
  return {
    collection: SERVICE_ACCOUNTS.plural,
    name: "token",
    verbs: ["create"],
    answer: TOKEN_REQUEST,
    handle: async (target, call) => handleToken({ ...deps, tokens }, target, call),
  };
}

async function handleToken(
  deps: OperationDeps & { readonly tokens: AccountTokens },
  target: Target,
  { request }: ApiCall,
): Promise<RouteAnswer> {
  if (request.method !== "POST") throw methodNotAllowed();
  const { value } = await readParsedBody(request, deps);
  const answer = issueToken(deps, target, decode(value));
  return { status: 201, type: "application/json", body: `${JSON.stringify(answer)}\n` };
}

function decode(value: unknown): TokenRequest {
  try {
    return decodeTree("TokenRequest", value).object as unknown as TokenRequest; // reason: decoded by its schema
  } catch (error) {
    if (error instanceof TypeMismatch) throw badRequest(error.message);
    throw error;
  }
}

/** Issues a token of a service account. Throws `StatusError`. */
export function issueToken(
  deps: OperationDeps & { readonly tokens: AccountTokens },
  { namespace, name }: Pick<Target, "namespace" | "name">,
  request: TokenRequest,
): TokenRequest {
  const stored = deps.store.get(SERVICE_ACCOUNTS.plural, { namespace, name });
  if (stored === undefined) throw notFound(SERVICE_ACCOUNTS, name);
  const { spec } = request;
  const seconds = spec.expirationSeconds ?? DEFAULT_SECONDS;
  if (seconds < LEAST_SECONDS || seconds > MOST_SECONDS) {
    const limit =
      seconds < LEAST_SECONDS
        ? "may not specify a duration less than 10 minutes"
        : "may not specify a duration larger than 2^32 seconds";
    throw invalidObject(TOKEN_REQUEST, "", [invalid("spec.expirationSeconds", seconds, limit)]);
  }
  const bound = boundObject(deps, { namespace, name }, spec.boundObjectRef);
  // The collection has nothing but service accounts.
  const account = stored.shared() as unknown as ServiceAccount;
  const audiences = spec.audiences ?? [];
  const { token, expiresAt } = deps.tokens.issue({ account, audiences, seconds, bound });
  const created = timeText(deps.clock.now().wall);
  return {
    kind: "TokenRequest",
    apiVersion: "authentication.k8s.io/v1",
    metadata: { name, namespace, creationTimestamp: created },
    spec: { ...spec, audiences: audiences.length === 0 ? [ISSUER] : audiences, expirationSeconds: seconds },
    status: { token, expirationTimestamp: timeText(expiresAt) },
  };
}

/** The pod that a token is to end with, with its UID. */
function boundObject(
  { store }: OperationDeps,
  account: Pick<Target, "namespace" | "name">,
  bound: TokenRequest["spec"]["boundObjectRef"],
): TokenRequest["spec"]["boundObjectRef"] {
  if (bound === undefined) return undefined;
  const { kind = "", name = "", uid = "" } = bound;
  if (kind !== "Pod")
    throw badRequest(
      `cannot bind token for serviceaccount to object of kind ${JSON.stringify(kind)}: only Pod is supported`,
    );
  // The collection has nothing but pods.
  const pod = store.get(PODS.plural, { namespace: account.namespace, name })?.shared() as unknown as Pod | undefined;
  if (pod === undefined) throw notFound(PODS, name);
  if (pod.spec.serviceAccountName !== account.name) {
    const what = `cannot bind token for serviceaccount ${JSON.stringify(account.name)}`;
    throw badRequest(`${what} to pod running with different serviceaccount name.`);
  }
  if (uid !== "" && pod.metadata.uid !== uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict(PODS, name, why);
  }
  return { ...bound, uid: pod.metadata.uid ?? "" };
}
