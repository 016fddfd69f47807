import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { SubjectAccessReviewSpec, UserInfo } from "../../model/generated/types.ts";
import { ApiError, type KubeApi } from "./port.ts";
import { ACCESS_REVIEWS, TOKEN_REVIEWS } from "./resources.ts";

/** A user as the API server returns it. */
export interface ReviewedUser {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** As in Kubernetes: five attempts, half a second and then 1.5 times as long each, with jitter. */
const TRIES = 5;
const FIRST_MS = 500;
const FACTOR = 1.5;
const JITTER = 0.2;

export interface ReviewDeps {
  readonly api: Pick<KubeApi, "create">;
  readonly clock: Clock;
  /** 0 to 1; Math.random unless a test decides. */
  readonly random?: () => number;
}

/** Token and access reviews of the API server. */
export class ApiReviews {
  constructor(
    private readonly deps: ReviewDeps,
    private readonly nodeName: string,
  ) {}

  /** Returns the user of a token, or undefined if it is not valid. Rejects with `ApiError`. */
  async review(token: string, options: Abortable): Promise<ReviewedUser | undefined> {
    const object = { metadata: {}, spec: { token } };
    const { status } = await this.retry(options, () => this.deps.api.create(TOKEN_REVIEWS, { object }, options));
    if (status?.error && status.authenticated !== true) return undefined;
    const user: UserInfo | undefined = status?.authenticated === true ? status.user : undefined;
    // The response decides about access: anything malformed is a denial.
    if (typeof user?.username !== "string" || user.username === "") return undefined;
    const groups: unknown = user.groups ?? [];
    if (!Array.isArray(groups) || !groups.every((group) => typeof group === "string")) return undefined;
    return {
      name: user.username,
      groups,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...(user.extra === undefined ? {} : { extra: user.extra }),
    };
  }

  /** True if a user may use a verb on a sub-resource of this node. Rejects with `ApiError`. */
  async isAllowed(
    question: { readonly user: ReviewedUser; readonly verb: string; readonly subresource: string },
    options: Abortable,
  ): Promise<boolean> {
    const { user, verb, subresource } = question;
    const spec: SubjectAccessReviewSpec = {
      user: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: [...user.groups],
      ...(user.extra === undefined
        ? {}
        : { extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])) }),
      resourceAttributes: { verb, version: "v1", resource: "nodes", subresource, name: this.nodeName },
    };
    const object = { metadata: {}, spec };
    const { status } = await this.retry(options, () => this.deps.api.create(ACCESS_REVIEWS, { object }, options));
    return status?.allowed === true && status.denied !== true;
  }

  private async retry<T>({ signal }: Abortable, review: () => Promise<T>): Promise<T> {
    const { clock, random = Math.random } = this.deps;
    for (let tries = 1, wait = FIRST_MS; ; tries++, wait *= FACTOR) {
      try {
        return await review();
      } catch (error) {
        if (!(error instanceof ApiError) || !error.isRetryable || tries === TRIES) throw error;
        await clock.sleep(wait * (1 + JITTER * random()), { signal });
      }
    }
  }
}
