import { BinaryReader } from "@bufbuild/protobuf/wire";

/**
 * Decodes a message of at most so many fields; throws if there are more. Two bytes on the wire may become an object of a
 * hundred bytes, so that the size of a message limits neither the memory nor the time that it takes.
 */
export function decodeBounded<T>(codec: { decode(input: BinaryReader): T }, bytes: Uint8Array, mostFields: number): T {
  const reader = new BinaryReader(bytes);
  const read = reader.uint32;
  // Reads the tag of each field, and its length or its number if that has 32 bits: one or two calls a field.
  let left = 2 * mostFields;
  reader.uint32 = () => {
    left -= 1;
    if (left < 0) throw new Error(`the message has more than ${mostFields} fields`);
    return read.call(reader);
  };
  return codec.decode(reader);
}
