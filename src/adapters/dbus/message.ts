import { type BusValue, ValueReader, ValueWriter, type Variant } from "./values.ts";

/** A message of D-Bus. */
export interface BusMessage {
  readonly type: "call" | "return" | "error" | "signal";
  readonly serial: number;
  readonly path?: string;
  readonly interface?: string;
  readonly member?: string;
  readonly errorName?: string;
  /** The serial of the call that this one answers. */
  readonly replySerial?: number;
  readonly destination?: string;
  readonly sender?: string;
  readonly signature: string;
  readonly body: readonly BusValue[];
  /** How many file descriptors come with it. */
  readonly fds?: number;
}

const TYPES = ["", "call", "return", "error", "signal"] as const;
/** Numbers and signatures of the header's fields. */
const FIELDS = {
  path: [1, "o"],
  interface: [2, "s"],
  member: [3, "s"],
  errorName: [4, "s"],
  replySerial: [5, "u"],
  destination: [6, "s"],
  sender: [7, "s"],
  signature: [8, "g"],
  fds: [9, "u"],
} as const;
const NAMES = Object.keys(FIELDS) as readonly (keyof typeof FIELDS)[]; // reason: its own keys
const FIXED_BYTES = 16;
const LITTLE = "l".charCodeAt(0);
const VERSION = 1;

/** The bytes of a message, little endian. */
export function encodeMessage(message: BusMessage): Buffer {
  const body = new ValueWriter().write(message.signature, message.body).bytes;
  const fields = NAMES.flatMap((name): BusValue[] => {
    const value = message[name];
    const [code, signature] = FIELDS[name];
    return value === undefined || value === "" ? [] : [[code, { signature, value }]];
  });
  const writer = new ValueWriter();
  const head = [LITTLE, TYPES.indexOf(message.type), 0, VERSION, body.length, message.serial, fields];
  writer.write("yyyyuua(yv)", head);
  writer.align(8);
  return Buffer.concat([writer.bytes, body]);
}

/** The length of the message that begins here; undefined if too little of it is there to tell. */
export function messageLength(bytes: Buffer): number | undefined {
  if (bytes.length < FIXED_BYTES) return undefined;
  const reader = new ValueReader(bytes, bytes[0] === LITTLE, 4);
  const [body = 0, , fields = 0] = reader.read("uuu").map(Number);
  return FIXED_BYTES + Math.ceil(fields / 8) * 8 + body;
}

/** The message in these bytes, which are exactly its own. Throws for one that is malformed. */
export function decodeMessage(bytes: Buffer): BusMessage {
  const reader = new ValueReader(bytes, bytes[0] === LITTLE);
  const [, type = 0, , , , serial = 0, fields] = reader.read("yyyyuua(yv)");
  reader.align(8);
  const known: Record<string, BusValue> = {};
  // reason: the signature above says that it is a list of pairs
  for (const [code, variant] of fields as readonly (readonly [number, Variant])[]) {
    const name = NAMES.find((each) => FIELDS[each][0] === code);
    if (name !== undefined) known[name] = variant.value;
  }
  const { signature = "", ...rest } = known;
  const kind = TYPES[Number(type)];
  if (kind === undefined || kind === "") throw new Error(`message type ${Number(type)} is unknown`);
  const body = reader.read(String(signature));
  // reason: each field was read with the type that the specification gives it
  return { ...(rest as Partial<BusMessage>), type: kind, serial: Number(serial), signature: String(signature), body };
}
