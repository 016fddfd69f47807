import type { RequestUser } from "../kinds/kind.ts";
import type { ApiPath } from "../rest/api-path.ts";
import { qualified, StatusError } from "../status/status-error.ts";

/** What a user wants to do. */
export interface AccessQuestion {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

/** Members may do everything: whoever has the certificate of the kubeconfig, and whoever reaches the unix socket. */
export const ADMINISTRATORS = "system:masters";
/** What any user may ask about itself. */
const SELF_REVIEWS = ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"];

/** There is no RBAC here: administrators may do everything, others may ask who they are. */
export function isAllowed(user: RequestUser, { verb, resource }: AccessQuestion): boolean {
  if (user.groups.includes(ADMINISTRATORS)) return true;
  return verb === "create" && SELF_REVIEWS.includes(resource);
}

const VERBS: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch" };

/** The question that a request asks. */
export function questionOf(path: ApiPath, method: string, isWatch: boolean): AccessQuestion {
  const { group, plural: resource, subresource, namespace, name } = path;
  const isOne = name !== "";
  const read = isOne ? "get" : isWatch ? "watch" : "list";
  const verb = method === "DELETE" ? (isOne ? "delete" : "deletecollection") : (VERBS[method] ?? read);
  return { verb, group, resource, subresource, namespace, name };
}

/** The refusal of a question, in the words of Kubernetes. */
export function accessDenied(user: RequestUser, question: AccessQuestion): StatusError {
  const { verb, group, resource, subresource, namespace, name } = question;
  const plural = subresource === "" ? resource : `${resource}/${subresource}`;
  const scope = namespace === "" ? "at the cluster scope" : `in the namespace "${namespace}"`;
  const what = `User "${user.name}" cannot ${verb} resource "${plural}" in API group "${group}" ${scope}`;
  const subject = `${qualified({ group, plural: resource })}${name === "" ? "" : ` "${name}"`}`;
  const details = { ...(name !== "" && { name }), ...(group !== "" && { group }), kind: resource };
  return new StatusError({ code: 403, reason: "Forbidden", message: `${subject} is forbidden: ${what}`, details });
}
