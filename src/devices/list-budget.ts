import type { Device } from "./device.ts";

/** How much a list of devices holds, or may hold. */
export interface ListSize {
  readonly devices: number;
  readonly idBytes: number;
}

/** Of all resources together. A device takes about 150 bytes besides its id; three plugins may list the most that one may. */
const MOST: ListSize = { devices: 300_000, idBytes: 16 * 1024 * 1024 };
/** A list of this size is always accepted: others cannot use up what a plugin of a few cards needs. */
const SMALL: ListSize = { devices: 200, idBytes: 16 * 1024 };

/** Limits what the lists of all device plugins hold together: the list that exceeds it is refused. */
export class ListBudget {
  /** Of the last list of each resource. */
  private readonly sizes = new Map<string, ListSize>();

  constructor(
    /** True while the devices of the resource are kept, also those of a lost plugin. */
    private readonly isKept: (resource: string) => boolean,
    private readonly limits: { readonly most: ListSize; readonly small: ListSize } = { most: MOST, small: SMALL },
  ) {}

  /** Accepts a list in place of the one before of the resource, or throws. */
  accept(resource: string, list: readonly Device[]): void {
    const size = sizeOf(list);
    const { most, small } = this.limits;
    if (!fits(size, small)) {
      const others = this.others(resource);
      const together = { devices: others.devices + size.devices, idBytes: others.idBytes + size.idBytes };
      if (!fits(together, most)) {
        throw new Error(
          `list of ${size.devices} devices with ${size.idBytes} bytes of ids: all device plugins may list ` +
            `${most.devices} devices with ${most.idBytes} bytes of ids, and others have ${others.devices} with ${others.idBytes}`,
        );
      }
    }
    this.sizes.set(resource, size);
  }

  private others(resource: string): ListSize {
    let [devices, idBytes] = [0, 0];
    for (const [name, size] of this.sizes) {
      if (!this.isKept(name)) this.sizes.delete(name);
      else if (name !== resource) {
        devices += size.devices;
        idBytes += size.idBytes;
      }
    }
    return { devices, idBytes };
  }
}

function sizeOf(list: readonly Device[]): ListSize {
  let idBytes = 0;
  for (const { id } of list) idBytes += Buffer.byteLength(id);
  return { devices: list.length, idBytes };
}

function fits(size: ListSize, limit: ListSize): boolean {
  return size.devices <= limit.devices && size.idBytes <= limit.idBytes;
}
