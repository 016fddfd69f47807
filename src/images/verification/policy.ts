import { parseImageRef } from "../../model/image-ref.ts";

/** The setting `imagePullCredentialsVerificationPolicy` with its list of images. */
export interface VerificationPolicy {
  readonly policy: "NeverVerify" | "NeverVerifyPreloadedImages" | "NeverVerifyAllowlistedImages" | "AlwaysVerify" | "";
  /** Names without tag and digest; one that ends in `/*` matches every image below it. */
  readonly allowlist: readonly string[];
}

/** True if a pod must have shown that it may pull the image before it may use the one on the node. Pure. */
export function requiresVerification(
  { policy, allowlist }: VerificationPolicy,
  { image, isPulledByAgent }: { readonly image: string; readonly isPulledByAgent: boolean },
): boolean {
  switch (policy) {
    case "NeverVerify":
      return false;
    case "AlwaysVerify":
      return true;
    case "NeverVerifyAllowlistedImages":
      return !allowlist.some((pattern) => isAllowed(pattern, image));
    default:
      return isPulledByAgent;
  }
}

/** Returns an image's name as it was written, without tag and digest. Throws `ImageRefError`. Pure. */
export function nameWithoutTag(image: string): string {
  const { tag, digest } = parseImageRef(image);
  const named = digest === "" ? image : image.slice(0, -digest.length - 1);
  return tag === "" ? named : named.slice(0, -tag.length - 1);
}

function isAllowed(pattern: string, image: string): boolean {
  const name = nameWithoutTag(image);
  return pattern.endsWith("/*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
