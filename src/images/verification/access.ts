import type { PullCredential } from "../../model/pull-credential.ts";
import type { PulledRecord, RecordedAccess, RecordedAccount, RecordedSecret } from "./record-format.ts";

/** As in Kubernetes: a matching secret is added to a record of fewer secrets only, so that reading it rarely writes. */
const MOST_ADDED = 100;
/** Secrets and service accounts of one name, and names of one image; more force a new pull, which is only slower. */
const MOST_ENTRIES = 1000;

/** Nobody is known to have access. */
export const NO_ACCESS: RecordedAccess = { secrets: [], accounts: [], isOpen: false };

/** Returns the access that a pull with this credential proves; undefined is an anonymous pull. Pure. */
export function accessBy(credential: PullCredential | undefined): RecordedAccess {
  const owner = credential?.owner;
  if (credential === undefined || owner === undefined) return { ...NO_ACCESS, isOpen: true };
  const { uid, namespace, name } = owner;
  if (owner.kind === "ServiceAccount") return { ...NO_ACCESS, accounts: [{ uid, namespace, name }] };
  return { ...NO_ACCESS, secrets: [{ uid, namespace, name, credentialHash: credential.hash }] };
}

/**
 * Checks a pod's credentials against a record: undefined if none of them is recorded, otherwise the access to add, so
 * that the same credential in another secret, or another one in the same secret, is recognised next time. Pure.
 */
export function provenAccess(
  recorded: RecordedAccess,
  credentials: readonly PullCredential[],
): { readonly add?: RecordedAccess } | undefined {
  if (recorded.isOpen) return {};
  const hasRoom = recorded.secrets.length < MOST_ADDED;
  for (const secret of credentials.flatMap((credential) => accessBy(credential).secrets)) {
    for (const known of recorded.secrets) {
      const isSame = sameCoordinates(known, secret);
      const hasHash = known.credentialHash !== "" && known.credentialHash === secret.credentialHash;
      if (!hasHash && !(isSame && hasRoom)) continue;
      return hasHash && (isSame || !hasRoom) ? {} : { add: { ...NO_ACCESS, secrets: [secret] } };
    }
  }
  const [account] = credentials.flatMap((credential) => accessBy(credential).accounts);
  return account !== undefined && recorded.accounts.some((known) => sameCoordinates(known, account)) ? {} : undefined;
}

/** Returns the record with the access added under the image's name, or the same record if it had it all. Pure. */
export function addAccess(record: PulledRecord, name: string, added: RecordedAccess): PulledRecord {
  const known = record.access.get(name);
  const merged = mergeAccess(known ?? NO_ACCESS, added);
  if (known !== undefined && merged === known) return record;
  if (known === undefined && !added.isOpen && added.secrets.length === 0 && added.accounts.length === 0) return record;
  const others = [...record.access].filter(([other]) => other !== name).slice(-(MOST_ENTRIES - 1));
  return { ...record, access: new Map([...others, [name, merged]]) };
}

/** Returns `known` itself if nothing is added to it. */
function mergeAccess(known: RecordedAccess, added: RecordedAccess): RecordedAccess {
  if (known.isOpen) return known;
  if (added.isOpen) return { ...NO_ACCESS, isOpen: true };
  const secrets = merge(known.secrets, added.secrets, (a, b) => a.credentialHash === b.credentialHash);
  const accounts = merge(known.accounts, added.accounts, () => true);
  return secrets === known.secrets && accounts === known.accounts ? known : { secrets, accounts, isOpen: false };
}

/** Ordered by namespace, name and uid, as in Kubernetes; an added entry replaces the one with its coordinates. */
function merge<T extends RecordedAccount>(
  known: readonly T[],
  added: readonly T[],
  isEqual: (a: T, b: T) => boolean,
): readonly T[] {
  const fresh = added.filter((one) => !known.some((old) => sameCoordinates(old, one) && isEqual(old, one)));
  if (fresh.length === 0) return known;
  const kept = known.filter((old) => !fresh.some((one) => sameCoordinates(old, one)));
  return [...kept.slice(-(MOST_ENTRIES - fresh.length)), ...fresh].sort(byCoordinates);
}

function sameCoordinates(a: RecordedAccount | RecordedSecret, b: RecordedAccount | RecordedSecret): boolean {
  return a.uid === b.uid && a.namespace === b.namespace && a.name === b.name;
}

function byCoordinates(a: RecordedAccount, b: RecordedAccount): number {
  return compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
