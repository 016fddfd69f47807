import { type ClaimSize, encodeClaims, sizeOfClaim } from "./checkpoint.ts";
import { type ClaimRecord, claimKey } from "./claim-record.ts";

/** Bytes of the largest checkpoint of claims: a larger one could not be read again. */
export const MOST_CHECKPOINT_BYTES = 64 * 1024 * 1024;
/** Bytes of it for the devices that drivers prepared; the rest is left to the claims themselves. */
const MOST_DEVICE_BYTES = 32 * 1024 * 1024;
/** A driver has at most this part of what is left for devices: alone 3.5 MiB, thousands of devices. */
const PART = 8;
/** The file without claims: its checksum may have more digits than that of an empty list, and a line end follows. */
const FRAME_BYTES = Buffer.byteLength(JSON.stringify(encodeClaims([]))) + 11;

/**
 * Divides the checkpoint among claims and drivers. A claim that is too much is refused before it is noted, so that the
 * claims of others can still be saved, and no driver can use up what others need. One that grows no larger than it was is
 * never refused.
 */
export class CheckpointRoom {
  private readonly claims = new Map<string, ClaimSize>();
  /** What the devices of each driver take. */
  private readonly drivers = new Map<string, number>();
  private total = FRAME_BYTES;
  private devices = 0;

  constructor(private readonly most = { bytes: MOST_CHECKPOINT_BYTES, devices: MOST_DEVICE_BYTES }) {}

  /** Returns the size of a claim as it is to be, for `set`. Throws if there is no room for it. */
  check(claim: ClaimRecord): ClaimSize {
    const key = claimKey(claim);
    const size = sizeOfClaim(claim);
    const { bytes, drivers } = size;
    const before = this.claims.get(key);
    const total = this.total + bytes - (before?.bytes ?? 0);
    if (total > this.most.bytes && total > this.total) {
      throw new Error(`checkpoint ResourceClaim ${key}: it would have ${total} bytes, more than ${this.most.bytes}`);
    }
    for (const [driver, devices] of drivers) {
      const known = before?.drivers.get(driver) ?? 0;
      const own = (this.drivers.get(driver) ?? 0) - known + devices;
      const share = Math.floor((this.most.devices - this.devices + known) / PART);
      if (devices > known && own > share) {
        throw new Error(
          `checkpoint ResourceClaim ${key}: devices of driver ${driver} would have ${own} bytes, more than its share of ${share}`,
        );
      }
    }
    return size;
  }

  /** Counts a claim as it is now. */
  set(claim: ClaimRecord, size = sizeOfClaim(claim)): void {
    const key = claimKey(claim);
    this.delete(key);
    this.claims.set(key, size);
    this.count(size, 1);
  }

  delete(key: string): void {
    const size = this.claims.get(key);
    if (size === undefined) return;
    this.claims.delete(key);
    this.count(size, -1);
  }

  private count({ bytes, drivers }: ClaimSize, sign: 1 | -1): void {
    this.total += sign * bytes;
    for (const [driver, size] of drivers) {
      const own = (this.drivers.get(driver) ?? 0) + sign * size;
      if (own > 0) this.drivers.set(driver, own);
      else this.drivers.delete(driver);
      this.devices += sign * size;
    }
  }
}
