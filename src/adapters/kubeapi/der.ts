import { isIPv4 } from "node:net";

/** A DER writer, just enough for certificates and their requests: every function returns a whole element. */

function element(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => element(0x30, ...parts);

/** DER orders the elements of a SET by their bytes. */
export const set = (...parts: readonly Uint8Array[]): Buffer => element(0x31, ...[...parts].sort(Buffer.compare));

export const nothing = element(0x05);

export const boolean = (value: boolean): Buffer => element(0x01, Buffer.from([value ? 0xff : 0]));

/** A non-negative integer from its bytes, most significant first. */
export function integer(bytes: Uint8Array): Buffer {
  const start = bytes.findIndex((byte) => byte !== 0);
  const digits = start === -1 ? Buffer.from([0]) : bytes.subarray(start);
  const needsZero = ((digits[0] ?? 0) & 0x80) !== 0;
  return element(0x02, needsZero ? Buffer.from([0]) : Buffer.alloc(0), digits);
}

export const bitString = (bytes: Uint8Array, unusedBits = 0): Buffer => element(0x03, Buffer.from([unusedBits]), bytes);

export const octetString = (...parts: readonly Uint8Array[]): Buffer => element(0x04, ...parts);

/** An object identifier from its dotted form. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes: number[] = [];
  for (const arc of [first * 40 + second, ...rest]) {
    const digits = [arc & 0x7f];
    for (let high = Math.floor(arc / 128); high > 0; high = Math.floor(high / 128))
      digits.unshift((high & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return element(0x06, Buffer.from(bytes));
}

/** PrintableString where the characters allow it, as other tools do: some compare names byte by byte. */
export function text(value: string): Buffer {
  const isPrintable = /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value);
  return element(isPrintable ? 0x13 : 0x0c, Buffer.from(value, "utf8"));
}

/** UTCTime before 2050, GeneralizedTime from then on, as RFC 5280 wants; seconds only. */
export function time(wallMs: number): Buffer {
  const digits = `${new Date(wallMs).toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`;
  const isShort = new Date(wallMs).getUTCFullYear() < 2050;
  return isShort ? element(0x17, Buffer.from(digits.slice(2))) : element(0x18, Buffer.from(digits));
}

/** `[n]` around whole elements. */
export const explicit = (n: number, ...parts: readonly Uint8Array[]): Buffer => element(0xa0 | n, ...parts);

/** `[n]` instead of a primitive's own tag. */
export const implicit = (n: number, content: Uint8Array): Buffer => element(0x80 | n, content);

/** The 4 or 16 bytes of an IP address. Throws for anything else. */
export function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  // The URL parser expands and checks IPv6 for us; an IPv4 tail becomes two groups.
  const [head = "", tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split("::");
  const groups = (part: string): number[] =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const front = groups(head);
  const back = tail === undefined ? [] : groups(tail);
  const middle = new Array<number>(8 - front.length - back.length).fill(0);
  return Buffer.from([...front, ...middle, ...back].flatMap((group) => [group >> 8, group & 0xff]));
}

/** PEM of a DER text. */
export function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
