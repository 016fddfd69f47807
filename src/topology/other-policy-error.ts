/** A state file is intact but was written by another policy. */
export class OtherPolicyError extends Error {
  override readonly name = "OtherPolicyError";
}
