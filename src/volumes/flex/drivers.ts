import type { DriverFile } from "../../adapters/plugins/driver-directories.ts";
import type { Abortable } from "../../lib/abort.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { VolumeHost } from "../kind.ts";
import { FlexDriver } from "./driver.ts";

/** The drivers that are installed. One that is replaced is initialized anew at its next use. */
export class FlexDrivers {
  private readonly known = new Map<string, { readonly identity: string; readonly driver: FlexDriver }>();
  private readonly listeners = new Listeners();
  private isScanned = false;

  constructor(
    private readonly host: Pick<VolumeHost, "run">,
    private readonly directory: string,
  ) {}

  /** Takes the drivers that are there now, by the names of their directories. */
  found(files: ReadonlyMap<string, DriverFile>): void {
    let isChanged = !this.isScanned;
    this.isScanned = true;
    const names = new Set([...files.keys()].map(driverName));
    for (const name of [...this.known.keys()]) isChanged = (!names.has(name) && this.known.delete(name)) || isChanged;
    for (const [directory, { path, identity }] of files) {
      const name = driverName(directory);
      if (this.known.get(name)?.identity === identity) continue;
      this.known.set(name, { identity, driver: new FlexDriver(name, path, this.host) });
      isChanged = true;
    }
    if (isChanged) this.listeners.call();
  }

  get names(): readonly string[] {
    return [...this.known.keys()];
  }

  /** Throws if it is not installed. */
  get(name: string): FlexDriver {
    const found = this.known.get(name)?.driver;
    if (found !== undefined) return found;
    if (!this.isScanned) throw new Error(`flexVolume driver ${name}: the drivers of the node are not listed yet`);
    throw new Error(`flexVolume driver ${name} is not installed in ${this.directory}: no volume plugin matched`);
  }

  /** Calls `fn` when drivers are installed, replaced or removed. */
  onChange(fn: () => void, options: Abortable): void {
    this.listeners.add(fn, options);
  }
}

/** `vendor/driver` of the directory `vendor~driver`. */
function driverName(directory: string): string {
  return directory.replace("~", "/");
}
