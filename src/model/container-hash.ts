import { fnv1a32 } from "./fnv.ts";

/**
 * Hash of what makes a running container outdated: only its name and image, as in Kubernetes.
 * Lower-case hex without padding, as it stands in the container's annotation.
 */
export function containerHash(container: { readonly name: string; readonly image?: string }): string {
  const json = escapeHtml(JSON.stringify({ image: container.image ?? "", name: container.name }));
  const bytes = new TextEncoder().encode(json);
  // The original hashes the printed form of the byte list; others compare with what it stored.
  return fnv1a32(new TextEncoder().encode(`([]uint8)[${bytes.join(" ")}]`)).toString(16);
}

/** The escapes of the original's JSON writer, which keeps its output safe inside HTML. */
function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
