import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { LogError } from "./port.ts";
import type { Sealer } from "./record.ts";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
export const KEY_BYTES = 32;

/** AES-256-GCM with a random nonce for each value; the object's key is authenticated, so that values cannot be swapped. */
export class AesSealer implements Sealer {
  constructor(
    private readonly secret: Buffer,
    /** Where the secret comes from, for messages. */
    private readonly place: string,
  ) {}

  seal(key: string, value: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.secret, nonce);
    cipher.setAAD(Buffer.from(key));
    return Buffer.concat([nonce, cipher.update(value, "utf8"), cipher.final(), cipher.getAuthTag()]);
  }

  open(key: string, sealed: Buffer): string {
    try {
      const decipher = createDecipheriv("aes-256-gcm", this.secret, sealed.subarray(0, NONCE_BYTES));
      decipher.setAAD(Buffer.from(key));
      decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
      const text = decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString("utf8");
    } catch (cause) {
      throw new LogError("NoKey", `decrypt ${key}: it was not encrypted with the key in ${this.place}`, { cause });
    }
  }
}
