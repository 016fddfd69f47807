import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { type ProtobufFields, protobufTypes } from "../../model/generated/api-protobuf.ts";
import { apiKinds } from "../../model/generated/api-schema.ts";
import { type FieldSchema, kinds } from "../../model/generated/schema.ts";
import { DEEPEST, MOST_VALUES, measureJson } from "../schema/json-depth.ts";
import { fieldOf, typeSchema } from "../schema/type-schema.ts";
import { badRequest } from "../status/status-error.ts";

type Tree = Record<string, unknown>;

/** Every body begins with these four bytes. */
const MAGIC = Buffer.from([0x6b, 0x38, 0x73, 0x00]);

/**
 * An object from protobuf, in the form of JSON: the clients that Kubernetes generates send nothing else. Throws
 * `StatusError` if it is not one, or of a kind that is not known here.
 */
export function decodeProtobuf(body: Buffer): Tree {
  try {
    if (!body.subarray(0, MAGIC.length).equals(MAGIC))
      throw new Error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
    const { apiVersion, kind, raw } = decodeEnvelope(body.subarray(MAGIC.length));
    return { apiVersion, kind, ...new MessageDecoder().message(typeOf(apiVersion, kind), raw) };
  } catch (error) {
    throw badRequest(error instanceof Error ? error.message : String(error));
  }
}

function typeOf(apiVersion: string, kind: string): string {
  const key = `${apiVersion}/${kind}`;
  const found = kind === "DeleteOptions" ? kind : (kinds[key] ?? apiKinds[key]);
  if (found === undefined)
    throw new Error(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`);
  return found;
}

function decodeEnvelope(bytes: Uint8Array): { apiVersion: string; kind: string; raw: Uint8Array } {
  const envelope: { apiVersion: string; kind: string; raw: Uint8Array } = {
    apiVersion: "",
    kind: "",
    raw: Buffer.alloc(0),
  };
  eachField(bytes, (number, reader, wire) => {
    if (number > 2) return false;
    if (wire !== WireType.LengthDelimited) throw wrongWire("Unknown", wire);
    if (number === 2) envelope.raw = reader.bytes();
    else {
      eachField(reader.bytes(), (inner, type) => {
        if (inner === 1) envelope.apiVersion = type.string();
        else if (inner === 2) envelope.kind = type.string();
        else return false;
        return true;
      });
    }
    return true;
  });
  return envelope;
}

/** Calls `read` for each field; it says whether it took the value. */
function eachField(bytes: Uint8Array, read: (number: number, reader: BinaryReader, wire: WireType) => boolean): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag();
    if (!read(number, reader, wire)) reader.skip(wire);
  }
}

interface MessageType {
  readonly type: string;
  readonly numbers: ProtobufFields;
}

/** Decodes one body: `MOST_VALUES` is the limit of all its messages together, as it is for JSON. */
class MessageDecoder {
  private values = 0;

  message(type: string, bytes: Uint8Array): Tree {
    const tree: Tree = {};
    // As in JSON, an object counts more than a scalar even if it is empty.
    if (bytes.length === 0) this.count(1);
    this.readInto(tree, { type, numbers: protobufTypes[type] ?? {} }, bytes);
    return tree;
  }

  private readInto(tree: Tree, { type, numbers }: MessageType, bytes: Uint8Array): void {
    eachField(bytes, (number, reader, wire) => {
      const name = numbers[number];
      if (name === undefined) return false;
      // What JSON has inline is a message of its own here.
      if (typeof name !== "string") {
        if (wire !== WireType.LengthDelimited) throw wrongWire("an embedded message", wire);
        this.readInto(tree, { type, numbers: name }, reader.bytes());
        return true;
      }
      const field = fieldOf(type, name);
      if (field === undefined) return false;
      checkWire(field, name, wire);
      this.count(1);
      if (field.of === "map") this.readEntry(ownTree(tree, name), field, reader.bytes());
      else if (field.of === "list") this.readElements(field, reader, { wire, into: ownList(tree, name) });
      else tree[name] = this.readValue(field.type, reader);
      return true;
    });
  }

  /** One element, or all of them packed into one value. */
  private readElements(
    { type }: FieldSchema,
    reader: BinaryReader,
    { wire, into }: { readonly wire: WireType; readonly into: unknown[] },
  ): void {
    if (wire !== WireType.LengthDelimited || !VARINTS.includes(type)) {
      into.push(this.readValue(type, reader));
      return;
    }
    const packed = new BinaryReader(reader.bytes());
    while (packed.pos < packed.len) {
      this.count(1);
      into.push(this.readValue(type, packed));
    }
  }

  private readEntry(map: Tree, { type }: FieldSchema, bytes: Uint8Array): void {
    let key = "";
    let value: unknown = type === "string" || type === "bytes" ? "" : undefined;
    eachField(bytes, (number, reader) => {
      if (number === 1) key = reader.string();
      // Lists are the values of one kind of map only, that of what else is known about a user.
      else if (number === 2) value = type === "any" ? this.readTexts(reader.bytes()) : this.readValue(type, reader);
      else return false;
      return true;
    });
    Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
  }

  private readTexts(bytes: Uint8Array): readonly string[] {
    const texts: string[] = [];
    eachField(bytes, (number, reader) => {
      if (number !== 1) return false;
      this.count(1);
      texts.push(reader.string());
      return true;
    });
    return texts;
  }

  private readValue(type: string, reader: BinaryReader): unknown {
    if (typeSchema(type) !== undefined) return this.message(type, reader.bytes());
    switch (type) {
      case "string":
        return reader.string();
      case "boolean":
        return reader.bool();
      case "int32":
        return reader.int32();
      case "int64":
        return Number(reader.int64());
      case "number":
        return reader.double();
      case "bytes":
        return Buffer.from(reader.bytes()).toString("base64");
      case "quantity":
        return this.readTexts(reader.bytes())[0] ?? "0";
      case "intOrString":
        return readIntOrString(reader.bytes());
      case "time":
      case "microTime":
        return readTime(reader.bytes(), type === "time" ? 0 : 6);
      default:
        return this.readRaw(reader.bytes());
    }
  }

  /** JSON inside of protobuf. */
  private readRaw(bytes: Uint8Array): unknown {
    let raw: unknown = null;
    eachField(bytes, (field, reader) => {
      if (field !== 1) return false;
      const text = Buffer.from(reader.bytes()).toString("utf8");
      const { depth, values } = measureJson(text);
      if (depth > DEEPEST) throw new Error(`JSON inside of protobuf nests more than ${DEEPEST} levels`);
      this.count(values);
      raw = text === "" ? null : (JSON.parse(text) as unknown);
      return true;
    });
    return raw;
  }

  private count(values: number): void {
    this.values += values;
    if (this.values > MOST_VALUES) throw new Error(`the message has more than ${MOST_VALUES} fields and elements`);
  }
}

function ownTree(tree: Tree, name: string): Tree {
  const known = tree[name];
  if (typeof known === "object" && known !== null) return known as Tree; // reason: only this function sets maps
  const made: Tree = {};
  tree[name] = made;
  return made;
}

function ownList(tree: Tree, name: string): unknown[] {
  const known = tree[name];
  if (Array.isArray(known)) return known;
  const made: unknown[] = [];
  tree[name] = made;
  return made;
}

const VARINTS = ["int32", "int64", "boolean"];

/** A value of another wire type would be read as something else: the bytes behind it have no meaning then. */
function checkWire({ type, of }: FieldSchema, name: string, wire: WireType): void {
  const isPlain = of !== "map" && VARINTS.includes(type);
  const isPacked = of === "list" && wire === WireType.LengthDelimited;
  const wanted = isPlain
    ? WireType.Varint
    : of !== "map" && type === "number"
      ? WireType.Bit64
      : WireType.LengthDelimited;
  if (wire !== wanted && !(isPlain && isPacked)) throw wrongWire(name, wire);
}

function wrongWire(name: string, wire: WireType): Error {
  return new Error(`proto: wrong wireType = ${wire} for field ${name}`);
}

function readIntOrString(bytes: Uint8Array): number | string {
  let isText = false;
  let number = 0;
  let text = "";
  eachField(bytes, (field, reader) => {
    if (field === 1) isText = Number(reader.int64()) === 1;
    else if (field === 2) number = reader.int32();
    else if (field === 3) text = reader.string();
    else return false;
    return true;
  });
  return isText ? text : number;
}

/** Null for a time that is not set. */
function readTime(bytes: Uint8Array, digits: number): string | null {
  let seconds: number | undefined;
  let nanos = 0;
  eachField(bytes, (field, reader) => {
    if (field === 1) seconds = Number(reader.int64());
    else if (field === 2) nanos = reader.int32();
    else return false;
    return true;
  });
  if (seconds === undefined) return null;
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  return digits === 0 ? `${whole}Z` : `${whole}.${String(nanos).padStart(9, "0").slice(0, digits)}Z`;
}
