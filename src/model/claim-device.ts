/** One device of a resource claim, as its driver described it when it prepared the claim. */
export interface ClaimDevice {
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  /** Set if the device is shared between claims. */
  readonly shareId?: string | undefined;
  /** The requests of the claim that it is for; empty: all of them. */
  readonly requests: readonly string[];
  /** Fully qualified names, `vendor.com/class=name`. */
  readonly cdiDevices: readonly string[];
}

/** A prepared resource claim that a container uses. */
export interface ContainerClaim {
  readonly name: string;
  readonly namespace: string;
  readonly devices: readonly ClaimDevice[];
}
