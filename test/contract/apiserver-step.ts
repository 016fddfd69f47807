/** A request that is sent to both servers; both must answer the same. */
export interface Step {
  readonly name: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  /** The body is made from the answer to an earlier step of the same server. */
  readonly from?: { readonly step: string; change(answer: never): unknown };
}
