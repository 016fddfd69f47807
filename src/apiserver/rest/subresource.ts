import type { RouteAnswer } from "../../adapters/net/http-route.ts";
import type { Kind, Verb } from "../kinds/kind.ts";
import type { Target } from "../operations/context.ts";
import type { ApiCall } from "./api-call.ts";

/** A sub-resource that is more than a part of an object: it does something, or shows something else. */
export interface Subresource {
  /** `pods`, `deployments.apps`: whose sub-resource it is. */
  readonly collection: string;
  readonly name: string;
  readonly verbs: readonly (Verb | "connect")[];
  /** The kind that it takes and gives, if it is not that of the object. */
  readonly answer: { readonly group: string; readonly version: string; readonly kind: string };
  /** Rejects with `StatusError`. */
  handle(target: Target, call: ApiCall): Promise<RouteAnswer>;
}

/** All sub-resources with a handler of their own. */
export class SubresourceTable {
  constructor(readonly all: readonly Subresource[]) {}

  find({ collection }: Kind, name: string): Subresource | undefined {
    return this.all.find((one) => one.collection === collection && one.name === name);
  }

  of({ collection }: Kind): readonly Subresource[] {
    return this.all.filter((one) => one.collection === collection);
  }
}
