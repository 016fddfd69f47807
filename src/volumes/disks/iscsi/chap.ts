import { messageOf } from "../../../lib/errors.ts";
import { type IscsiCall, iscsiadm } from "./iscsiadm.ts";

/** Names and passwords of a Secret, and where they are wanted. */
export interface ChapSecrets {
  readonly discovery: boolean;
  readonly session: boolean;
  readonly values: Readonly<Record<string, string>>;
}

const KEYS = ["username", "password", "username_in", "password_in"];

/** Has the discovery of targets authenticate itself. `record` is what iscsiadm knows the portal by. */
export async function setDiscoveryChap(record: readonly string[], chap: ChapSecrets, call: IscsiCall): Promise<void> {
  if (chap.discovery) await setChap({ record, prefix: "discovery.sendtargets.auth", what: "discoverydb" }, chap, call);
}

/** Has sessions with a target authenticate themselves. */
export async function setSessionChap(record: readonly string[], chap: ChapSecrets, call: IscsiCall): Promise<void> {
  if (chap.session) await setChap({ record, prefix: "node.session.auth", what: "node session" }, chap, call);
}

async function setChap(
  { record, prefix, what }: { readonly record: readonly string[]; readonly prefix: string; readonly what: string },
  { values }: ChapSecrets,
  call: IscsiCall,
): Promise<void> {
  const set = (key: string, value: string, secret = ""): Promise<string> =>
    iscsiadm([...record, "-o", "update", "-n", key, "-v", value], { ...call, secret });
  await set(`${prefix}.authmethod`, "CHAP");
  for (const key of KEYS.map((one) => `${prefix}.${one}`)) {
    // Many a Secret ends with a newline, which iscsiadm does not read back.
    const value = (values[key] ?? "").replace(/\n$/, "");
    if (value === "") continue;
    // iscsiadm would write it into its record as it is: a line of its own is another setting.
    if (/\p{Cc}/u.test(value)) {
      throw new Error(`secret key "${key}" has a line break or another control character; remove it`);
    }
    await set(key, value, value).catch((error: unknown) => {
      throw new Error(`failed to update ${what} key "${key}" error: ${messageOf(error)}`);
    });
  }
}
