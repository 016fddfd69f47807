import { createHash } from "node:crypto";

/** A pod's pull secret that an image was pulled with. */
export interface RecordedSecret {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly credentialHash: string;
}

/** A pod's service account whose token a credential provider turned into the credential of a pull. */
export interface RecordedAccount {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** Who may use an image that was pulled by one name. */
export interface RecordedAccess {
  readonly secrets: readonly RecordedSecret[];
  readonly accounts: readonly RecordedAccount[];
  /** True if it was pulled anonymously or with the node's credentials, so that every pod may use it. */
  readonly isOpen: boolean;
}

/** What is known of an image that the agent pulled: `ImagePulledRecord` of Kubernetes. */
export interface PulledRecord {
  /** The image id of the runtime. */
  readonly imageRef: string;
  /** Wall-clock milliseconds; the file has whole seconds. */
  readonly updatedAt: number;
  /** By the image's name without tag and digest, as containers wrote it. */
  readonly access: ReadonlyMap<string, RecordedAccess>;
}

/** A decoded file; `isOld` if it has an earlier version of the format. */
export interface Decoded<T> {
  readonly value: T;
  readonly isOld: boolean;
}

const GROUP = "kubelet.config.k8s.io";
const CURRENT = `${GROUP}/v1beta1`;
const VERSIONS: readonly unknown[] = [CURRENT, `${GROUP}/v1alpha1`];

/** Returns the file name of the record for an image reference, or of the intent for an image name. Pure. */
export function recordFileName(image: string): string {
  return `sha256-${createHash("sha256").update(image).digest("hex")}`;
}

/** True for names of records, false for temporary files and for names that nobody but an administrator wrote. Pure. */
export function isRecordFile(name: string): boolean {
  return name.startsWith("sha256-") && !name.endsWith(".tmp");
}

/** Returns the `ImagePullIntent` of Kubernetes, in the text that its kubelet writes. Pure. */
export function encodeIntent(image: string): string {
  return `${JSON.stringify({ kind: "ImagePullIntent", apiVersion: CURRENT, image })}\n`;
}

/** Returns the image that an intent is about. Throws if the text is no intent. Pure. */
export function decodeIntent(text: string): Decoded<string> {
  const { fields, isOld } = parse(text, "ImagePullIntent");
  only(fields, ["image"]);
  return { value: textOf(fields, "image"), isOld };
}

/** Returns the `ImagePulledRecord` of Kubernetes, in the text that its kubelet writes. Pure. */
export function encodeRecord({ imageRef, updatedAt, access }: PulledRecord): string {
  const lastUpdatedTime = new Date(updatedAt).toISOString().replace(/\.\d+Z$/, "Z");
  const sorted = [...access].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const credentialMapping = Object.fromEntries(sorted.map(([image, one]) => [image, encodeAccess(one)]));
  const head = { kind: "ImagePulledRecord", apiVersion: CURRENT, lastUpdatedTime, imageRef };
  return `${JSON.stringify({ ...head, ...(sorted.length > 0 && { credentialMapping }) })}\n`;
}

/** Returns a record. Throws if the text is none, or has fields that are not known: they may restrict access. Pure. */
export function decodeRecord(text: string): Decoded<PulledRecord> {
  const { fields, isOld } = parse(text, "ImagePulledRecord");
  only(fields, ["lastUpdatedTime", "imageRef", "credentialMapping"]);
  const updatedAt = Date.parse(textOf(fields, "lastUpdatedTime"));
  if (Number.isNaN(updatedAt)) throw new Error("lastUpdatedTime is not a time");
  const mapping = recordOf(fields["credentialMapping"] ?? {}, "credentialMapping");
  const access = new Map(Object.entries(mapping).map(([image, one]) => [image, decodeAccess(one)]));
  return { value: { imageRef: textOf(fields, "imageRef"), updatedAt, access }, isOld };
}

function encodeAccess({ secrets, accounts, isOpen }: RecordedAccess): object {
  const coordinates = ({ uid, namespace, name }: RecordedAccount): object => ({ uid, namespace, name });
  const hashed = (one: RecordedSecret): object => ({ ...coordinates(one), credentialHash: one.credentialHash });
  return {
    ...(secrets.length > 0 && { kubernetesSecrets: secrets.map(hashed) }),
    ...(accounts.length > 0 && { kubernetesServiceAccounts: accounts.map(coordinates) }),
    ...(isOpen && { nodePodsAccessible: true }),
  };
}

function decodeAccess(value: unknown): RecordedAccess {
  const fields = recordOf(value, "credentialMapping");
  only(fields, ["kubernetesSecrets", "kubernetesServiceAccounts", "nodePodsAccessible"]);
  const isOpen = fields["nodePodsAccessible"] ?? false;
  if (typeof isOpen !== "boolean") throw new Error("nodePodsAccessible is not a boolean");
  const items = (name: string, known: readonly string[]): Record<string, unknown>[] =>
    listOf(fields[name] ?? [], name).map((item) => only(recordOf(item, name), known));
  const account = (one: Record<string, unknown>): RecordedAccount => ({
    uid: textOf(one, "uid"),
    namespace: textOf(one, "namespace"),
    name: textOf(one, "name"),
  });
  const coordinates = ["uid", "namespace", "name"];
  return {
    secrets: items("kubernetesSecrets", [...coordinates, "credentialHash"]).map((one) => ({
      ...account(one),
      credentialHash: textOf(one, "credentialHash"),
    })),
    accounts: items("kubernetesServiceAccounts", coordinates).map(account),
    isOpen,
  };
}

function parse(text: string, kind: string): { fields: Record<string, unknown>; isOld: boolean } {
  const { kind: found, apiVersion, ...fields } = recordOf(JSON.parse(text), "the content");
  if (found !== kind) throw new Error(`kind is not ${kind}`);
  if (!VERSIONS.includes(apiVersion)) throw new Error(`apiVersion is none of ${VERSIONS.join(", ")}`);
  return { fields, isOld: apiVersion !== CURRENT };
}

function only(fields: Record<string, unknown>, known: readonly string[]): Record<string, unknown> {
  const unknown = Object.keys(fields).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`field ${JSON.stringify(unknown.slice(0, 100))} is not known`);
  return fields;
}

function textOf(fields: Record<string, unknown>, name: string): string {
  const value = fields[name] ?? "";
  if (typeof value !== "string") throw new Error(`${name} is not a string`);
  return value;
}

function recordOf(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${name} is not an object`);
  // Just checked.
  return value as Record<string, unknown>;
}

function listOf(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${name} is not a list`);
  return value;
}
