/** Why a pod is not admitted, with the reasons and messages of Kubernetes. */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}
