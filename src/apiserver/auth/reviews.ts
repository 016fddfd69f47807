import type { ResourceAttributes, SubjectAccessReviewSpec, TokenReviewSpec } from "../../model/generated/types.ts";
import type { VirtualResource } from "../discovery/discovery.ts";
import type { RequestUser } from "../kinds/kind.ts";
import { badRequest } from "../status/status-error.ts";
import { ADMINISTRATORS, isAllowed } from "./access.ts";
import type { AccountTokens } from "./account-tokens.ts";

/** A review as a whole object: what is asked, and the answer in its status. */
type Review = Readonly<Record<string, unknown>> & { readonly metadata?: object };

/** A resource that only answers questions. */
export interface ReviewResource extends VirtualResource {
  /** The type of its objects in the schema. */
  readonly type: string;
  review(review: Review, user: RequestUser): Review;
}

const AUTHENTICATION = { group: "authentication.k8s.io", version: "v1", verbs: ["create"] } as const;
const AUTHORIZATION = { group: "authorization.k8s.io", version: "v1", verbs: ["create"] } as const;

/** Who somebody is, and what they may do. */
export function reviewResources(tokens: AccountTokens): readonly ReviewResource[] {
  return [
    {
      ...AUTHENTICATION,
      ...names("TokenReview", false),
      review: (review) => ({ ...review, status: tokenStatus(tokens, specOf<TokenReviewSpec>(review)) }),
    },
    {
      ...AUTHENTICATION,
      ...names("SelfSubjectReview", false),
      review: (review, user) => ({ ...review, status: { userInfo: userInfo(user) } }),
    },
    {
      ...AUTHORIZATION,
      ...names("SubjectAccessReview", false),
      review: (review) => ({ ...review, status: accessStatus(specOf<SubjectAccessReviewSpec>(review)) }),
    },
    {
      ...AUTHORIZATION,
      ...names("LocalSubjectAccessReview", true),
      review: (review) => ({ ...review, status: accessStatus(specOf<SubjectAccessReviewSpec>(review)) }),
    },
    {
      ...AUTHORIZATION,
      ...names("SelfSubjectAccessReview", false),
      review: (review, user) => ({ ...review, status: allowedStatus(user, specOf<SubjectAccessReviewSpec>(review)) }),
    },
    {
      ...AUTHORIZATION,
      ...names("SelfSubjectRulesReview", false),
      review: (review, user) => ({ ...review, status: rulesStatus(user) }),
    },
  ];
}

function names(kind: string, isNamespaced: boolean) {
  const singular = kind.toLowerCase();
  return { kind, type: kind, singular, plural: `${singular}s`, isNamespaced };
}

/** What a review asks; it was decoded by the schema of its kind. */
function specOf<T>({ spec }: Review): T {
  return spec as T; // reason: see above
}

function tokenStatus(tokens: AccountTokens, { token, audiences = [] }: TokenReviewSpec): object {
  if (!token) throw badRequest("token is required for TokenReview in authentication");
  const user = tokens.review(token, audiences);
  if (user === undefined) return { user: {}, error: "invalid bearer token" };
  return { authenticated: true, user: userInfo(user), audiences: user.audiences };
}

function userInfo({ name, uid, groups, extra }: RequestUser): object {
  return { username: name, ...(uid && { uid }), groups, ...(extra && { extra }) };
}

function accessStatus(spec: SubjectAccessReviewSpec): object {
  const user = { name: spec.user ?? "", groups: spec.groups ?? [] };
  return allowedStatus(user, spec);
}

function allowedStatus(
  user: RequestUser,
  { resourceAttributes }: { readonly resourceAttributes?: ResourceAttributes },
) {
  const {
    verb = "",
    group = "",
    resource = "",
    subresource = "",
    namespace = "",
    name = "",
  } = resourceAttributes ?? {};
  const allowed = isAllowed(user, { verb, group, resource, subresource, namespace, name });
  return allowed ? { allowed } : { allowed, reason: "only administrators may do that: the local API has no RBAC" };
}

function rulesStatus(user: RequestUser): object {
  const isAdministrator = user.groups.includes(ADMINISTRATORS);
  const all = [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }];
  const own = [
    {
      verbs: ["create"],
      apiGroups: ["authorization.k8s.io"],
      resources: ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    { verbs: ["create"], apiGroups: ["authentication.k8s.io"], resources: ["selfsubjectreviews"] },
  ];
  const paths = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
  ];
  return {
    resourceRules: isAdministrator ? [...all, ...own] : own,
    nonResourceRules: [{ verbs: ["get"], nonResourceURLs: isAdministrator ? ["*"] : paths }],
    incomplete: false,
  };
}
