import { PODS } from "../../adapters/kubeapi/index.ts";
import type { Eviction } from "../../model/generated/types.ts";
import type { OperationDeps } from "../operations/context.ts";
import { deleteObject } from "../operations/delete.ts";
import { managerOf } from "../rest/query.ts";
import { readParsedBody } from "../rest/read-body.ts";
import type { Subresource } from "../rest/subresource.ts";
import { decodeTree } from "../schema/decode-tree.ts";
import { badRequest, methodNotAllowed } from "../status/status-error.ts";

/** `pods/eviction`: a deletion. There are no disruption budgets here that could refuse it. */
export function evictionSubresource(deps: OperationDeps): Subresource {
  return {
    collection: PODS.plural,
    name: "eviction",
    verbs: ["create"],
    answer: { group: "policy", version: "v1", kind: "Eviction" },
    handle: async (target, { request, user, warn }) => {
      if (request.method !== "POST") throw methodNotAllowed();
      const { value } = await readParsedBody(request, deps);
      const eviction = decodeTree("Eviction", value).object as unknown as Eviction; // reason: decoded by its schema
      const { name = target.name } = eviction.metadata ?? {};
      if (name !== target.name) {
        throw badRequest(`name in URL does not match name in Eviction object: ${JSON.stringify(name)}`);
      }
      const options = eviction.deleteOptions ?? {};
      const isDryRun = (options.dryRun ?? []).length > 0;
      const manager = managerOf("", request.headers["user-agent"]);
      await deleteObject(deps, target, { options, request: { user, manager, isDryRun, warn } });
      const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
      return { status: 201, type: "application/json", body: `${JSON.stringify(body)}\n` };
    },
  };
}
