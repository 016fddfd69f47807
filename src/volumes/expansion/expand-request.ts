/** How large a volume is to become, and how large its claim says it is. */
export interface ExpandRequest {
  readonly bytes: number;
  readonly fromBytes?: number;
}
