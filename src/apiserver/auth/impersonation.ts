import type { RequestUser } from "../kinds/kind.ts";
import { badRequest } from "../status/status-error.ts";
import { accessDenied, isAllowed } from "./access.ts";

type Headers = Readonly<Record<string, string | undefined>>;

/** The user that a request acts as: `kubectl --as` names another one. Throws `StatusError` if that is not allowed. */
export function actingUser(user: RequestUser, headers: Headers): RequestUser {
  const name = headers["impersonate-user"] ?? "";
  const groups = (headers["impersonate-group"] ?? "").split(",").flatMap((group) => group.trim() || []);
  if (name === "") {
    // Whoever asks to be less must not be more.
    const without = Object.keys(headers).find((header) => header.startsWith("impersonate-"));
    if (without !== undefined) throw badRequest(`header ${without}: Impersonate-User is missing beside it`);
    return user;
  }
  const question = { verb: "impersonate", group: "", resource: "users", subresource: "", namespace: "", name };
  if (!isAllowed(user, question)) throw accessDenied(user, question);
  return { name, groups: [...new Set([...groups, "system:authenticated"])] };
}
