/** A range of IPv4 addresses, from `10.43.0.0/16`. */
export class AddressRange {
  private readonly first: number;
  private readonly size: number;

  /** Throws if the text is not a range of IPv4 addresses. */
  constructor(readonly cidr: string) {
    const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(cidr);
    const bytes = (match ?? []).slice(1, 5).map(Number);
    const bits = Number(match?.[5] ?? 99);
    if (bytes.length !== 4 || bytes.some((byte) => byte > 255) || bits > 30) {
      throw new Error(`${cidr} is not a range of IPv4 addresses such as 10.43.0.0/16`);
    }
    this.size = 2 ** (32 - bits);
    const address = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
    this.first = address - (address % this.size);
  }

  has(address: string): boolean {
    const value = valueOf(address);
    return value !== undefined && value > this.first && value < this.first + this.size - 1;
  }

  /** The address at a place: the first usable one is at 1. */
  at(index: number): string {
    const value = this.first + index;
    return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
  }

  /** A free address, beginning at a random place; undefined if all are taken. */
  choose(taken: ReadonlySet<string>, random: () => number): string | undefined {
    const usable = this.size - 2;
    const begin = Math.floor(random() * usable);
    for (let step = 0; step < usable; step++) {
      const address = this.at(1 + ((begin + step) % usable));
      if (!taken.has(address)) return address;
    }
    return undefined;
  }
}

function valueOf(address: string): number | undefined {
  // In its one text form: with a leading zero it would be another text for an address that is taken.
  if (!/^(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}$/.test(address)) return undefined;
  const bytes = address.split(".").map(Number);
  return bytes.some((byte) => byte > 255) ? undefined : bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}
