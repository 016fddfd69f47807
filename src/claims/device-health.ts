import type { Abortable } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import type { ClaimDevice } from "../model/claim-device.ts";
import type { DeviceReport } from "./drivers.ts";

/** A report without its own time is valid for this long, in milliseconds, as in Kubernetes. */
const VALID_MS = 30_000;
/** Devices of one driver whose health is kept: of more, those are forgotten that were reported longest ago. */
const MOST_DEVICES = 16_384;

interface Known {
  readonly report: DeviceReport;
  /** Monotonic milliseconds. */
  readonly until: number;
}

/** The health of a device, as pods see it. */
export interface DeviceHealth {
  /** Undefined for a moment after a start of the agent: the driver is on its way back. */
  readonly health: DeviceReport["health"] | undefined;
  readonly message: string;
}

const UNKNOWN: DeviceHealth = { health: "Unknown", message: "" };
const EXPECTED: DeviceHealth = { health: undefined, message: "" };

/** What drivers report about their devices. A device without a valid report has health Unknown. */
export class DeviceHealthBook {
  /** By driver, then by pool and device. */
  private readonly drivers = new Map<string, Map<string, Known>>();
  private timer: Timer | undefined;
  /** Drivers that have reported, or are gone, since the agent started. */
  private readonly heard = new Set<string>();
  private readonly expectedUntil: number;

  constructor(
    private readonly clock: Clock,
    /** Called with a driver and its devices whose health has changed. */
    private readonly changed: (driver: string, isChanged: (device: ClaimDevice) => boolean) => void,
  ) {
    this.expectedUntil = clock.now().mono + VALID_MS;
  }

  /** Resolves when drivers that have not reported since the start are no longer expected; returns if one has. */
  async settle({ signal }: Abortable): Promise<(driver: string) => boolean> {
    await this.clock.sleep(this.expectedUntil - this.clock.now().mono, { signal });
    return (driver) => this.heard.has(driver);
  }

  healthOf({ driver, pool, device }: Pick<ClaimDevice, "driver" | "pool" | "device">): DeviceHealth {
    const now = this.clock.now().mono;
    if (!this.heard.has(driver) && now < this.expectedUntil) return EXPECTED;
    const known = this.drivers.get(driver)?.get(keyOf({ pool, device }));
    return known === undefined || known.until <= now ? UNKNOWN : known.report;
  }

  /** Takes over a report about all devices of a driver. One that is missing keeps its health until that is too old. */
  update(driver: string, reports: readonly DeviceReport[]): void {
    const now = this.clock.now().mono;
    this.heard.add(driver);
    const known = this.drivers.get(driver) ?? new Map<string, Known>();
    this.drivers.set(driver, known);
    const touched = new Set<string>();
    for (const report of reports) {
      const key = keyOf(report);
      const before = known.get(key);
      const valid = before !== undefined && before.until > now ? before.report : undefined;
      if (valid?.health !== report.health || valid.message !== report.message) touched.add(key);
      known.delete(key);
      known.set(key, { report, until: now + (report.validMs ?? VALID_MS) });
    }
    for (const key of [...known.keys()].slice(0, Math.max(0, known.size - MOST_DEVICES))) {
      known.delete(key);
      touched.add(key);
    }
    this.report(driver, touched);
    this.arm();
  }

  /** Nobody reports about the driver's devices any more. */
  clear(driver: string): void {
    this.heard.add(driver);
    const known = this.drivers.get(driver);
    if (known === undefined) return;
    this.drivers.delete(driver);
    this.report(driver, new Set(known.keys()));
  }

  private report(driver: string, keys: ReadonlySet<string>): void {
    if (keys.size > 0) this.changed(driver, (device) => keys.has(keyOf(device)));
  }

  /** Reports that grow too old are noticed without another report. */
  private arm(): void {
    this.timer?.cancel();
    const ends = [...this.drivers.values()].flatMap((known) => [...known.values()].map(({ until }) => until));
    if (ends.length === 0) return;
    const next = ends.reduce((a, b) => Math.min(a, b));
    this.timer = this.clock.after(Math.max(1, next - this.clock.now().mono), () => this.expire());
  }

  private expire(): void {
    const now = this.clock.now().mono;
    for (const [driver, known] of this.drivers) {
      const old = new Set([...known].filter(([, { until }]) => until <= now).map(([key]) => key));
      for (const key of old) known.delete(key);
      this.report(driver, old);
    }
    this.arm();
  }
}

function keyOf({ pool, device }: { readonly pool: string; readonly device: string }): string {
  return `${pool}/${device}`;
}
