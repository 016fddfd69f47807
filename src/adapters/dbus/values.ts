import { alignmentOf, type BusType, parseSignature } from "./signature.ts";

/** A value with its own type. */
export interface Variant {
  readonly signature: string;
  readonly value: BusValue;
}

/** A value of D-Bus: numbers of 64 bits are bigints, structures and arrays are lists. */
export type BusValue = string | number | bigint | boolean | Variant | readonly BusValue[];

/** Writes values in the wire format, little endian. */
export class ValueWriter {
  private readonly parts: Buffer[] = [];
  private length = 0;

  /** The bytes so far. */
  get bytes(): Buffer {
    return Buffer.concat(this.parts);
  }

  write(signature: string, values: readonly BusValue[]): this {
    parseSignature(signature).forEach((type, i) => this.one(type, values[i] ?? ""));
    return this;
  }

  align(to: number): void {
    this.add(Buffer.alloc((to - (this.length % to)) % to));
  }

  private one(type: BusType, value: BusValue): void {
    this.align(alignmentOf(type));
    if (type.kind === "basic") return this.basic(type.letter, value);
    const values = isList(value) ? value : [];
    if (type.kind === "struct") return type.of.forEach((of, i) => this.one(of, values[i] ?? ""));
    // The length does not count the padding before the first element.
    const length = Buffer.alloc(4);
    this.add(length);
    this.align(alignmentOf(type.of));
    const start = this.length;
    for (const each of values) this.one(type.of, each);
    length.writeUInt32LE(this.length - start);
  }

  private basic(letter: string, value: BusValue): void {
    switch (letter) {
      case "s":
      case "o":
        return this.text(String(value), 4);
      case "g":
        return this.text(String(value), 1);
      case "v": {
        const { signature, value: inner } = value as Variant; // reason: the caller gives a variant for its type
        this.text(signature, 1);
        return this.one(parseSignature(signature)[0] ?? { kind: "basic", letter: "y" }, inner);
      }
      default:
        return this.add(numberBytes(letter, value));
    }
  }

  private text(text: string, lengthBytes: 1 | 4): void {
    const encoded = Buffer.from(text);
    const length = Buffer.alloc(lengthBytes);
    length.writeUIntLE(encoded.length, 0, lengthBytes);
    this.add(length);
    this.add(encoded);
    this.add(Buffer.alloc(1));
  }

  private add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.parts.push(bytes);
    this.length += bytes.length;
  }
}

function numberBytes(letter: string, value: BusValue): Buffer {
  const bytes = Buffer.alloc(letter === "y" ? 1 : "nq".includes(letter) ? 2 : "xtd".includes(letter) ? 8 : 4);
  if (letter === "x") bytes.writeBigInt64LE(BigInt(value as bigint));
  else if (letter === "t") bytes.writeBigUInt64LE(BigInt(value as bigint));
  else if (letter === "d") bytes.writeDoubleLE(Number(value));
  else if ("ni".includes(letter)) bytes.writeIntLE(Number(value), 0, bytes.length);
  else bytes.writeUIntLE(Number(value), 0, bytes.length);
  return bytes;
}

function isList(value: BusValue): value is readonly BusValue[] {
  return Array.isArray(value);
}

/** Reads values in the wire format. Throws a RangeError past the end. */
export class ValueReader {
  constructor(
    private readonly bytes: Buffer,
    private readonly isLittle: boolean,
    private at = 0,
  ) {}

  get position(): number {
    return this.at;
  }

  read(signature: string): BusValue[] {
    return parseSignature(signature).map((type) => this.one(type));
  }

  align(to: number): void {
    this.at += (to - (this.at % to)) % to;
  }

  private one(type: BusType): BusValue {
    this.align(alignmentOf(type));
    if (type.kind === "basic") return this.basic(type.letter);
    if (type.kind === "struct") return type.of.map((of) => this.one(of));
    const length = this.number(4);
    this.align(alignmentOf(type.of));
    const end = this.at + length;
    if (end > this.bytes.length) throw new RangeError("array exceeds its message");
    const values: BusValue[] = [];
    while (this.at < end) values.push(this.one(type.of));
    return values;
  }

  private basic(letter: string): BusValue {
    switch (letter) {
      case "s":
      case "o":
        return this.text(this.number(4));
      case "g":
        return this.text(this.number(1));
      case "v": {
        const signature = this.text(this.number(1));
        return { signature, value: this.read(signature)[0] ?? "" };
      }
      case "b":
        return this.number(4) !== 0;
      case "x":
      case "t":
      case "d":
        return this.wide(letter);
      case "n":
      case "i":
        return this.signed(letter === "n" ? 2 : 4);
      default:
        return this.number(letter === "y" ? 1 : letter === "q" ? 2 : 4);
    }
  }

  private number(size: number): number {
    const at = this.step(size);
    return this.isLittle ? this.bytes.readUIntLE(at, size) : this.bytes.readUIntBE(at, size);
  }

  private signed(size: number): number {
    const at = this.step(size);
    return this.isLittle ? this.bytes.readIntLE(at, size) : this.bytes.readIntBE(at, size);
  }

  private wide(letter: "x" | "t" | "d"): number | bigint {
    const { bytes, isLittle } = this;
    const at = this.step(8);
    if (letter === "d") return isLittle ? bytes.readDoubleLE(at) : bytes.readDoubleBE(at);
    if (letter === "x") return isLittle ? bytes.readBigInt64LE(at) : bytes.readBigInt64BE(at);
    return isLittle ? bytes.readBigUInt64LE(at) : bytes.readBigUInt64BE(at);
  }

  private text(length: number): string {
    const at = this.step(length + 1);
    return this.bytes.toString("utf8", at, at + length);
  }

  private step(size: number): number {
    const { at } = this;
    if (at + size > this.bytes.length) throw new RangeError("value exceeds its message");
    this.at = at + size;
    return at;
  }
}
