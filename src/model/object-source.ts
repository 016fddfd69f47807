import type { Abortable } from "../lib/abort.ts";
import type {
  ConfigMap,
  CSIDriver,
  PersistentVolume,
  PersistentVolumeClaim,
  Secret,
  ServiceAccount,
  VolumeAttachment,
} from "./generated/types.ts";

/** The kinds of objects that pods refer to. */
export interface ObjectKinds {
  readonly ConfigMap: ConfigMap;
  readonly Secret: Secret;
  readonly PersistentVolumeClaim: PersistentVolumeClaim;
  readonly PersistentVolume: PersistentVolume;
  readonly ServiceAccount: ServiceAccount;
  readonly CSIDriver: CSIDriver;
  readonly VolumeAttachment: VolumeAttachment;
}

export type ObjectKind = keyof ObjectKinds;

/** Names one object; the namespace of those without one, such as a PersistentVolume, is empty. */
export interface ObjectRef<K extends ObjectKind = ObjectKind> {
  readonly kind: K;
  readonly namespace: string;
  readonly name: string;
}

export interface ReadOptions extends Abortable {
  /** For an object that no pod refers to itself: it is read now, and not followed. */
  readonly isOnce?: boolean;
}

/**
 * Where the objects come from that pods refer to: the API server, or manifests beside the pods. Whoever needs to hear
 * of changes says so per object; a provider watches exactly those, for as long as somebody listens.
 */
export interface ObjectSource {
  /** The newest known version; undefined when there is no such object. Rejects when that cannot be known now. */
  get<K extends ObjectKind>(ref: ObjectRef<K>, options: ReadOptions): Promise<ObjectKinds[K] | undefined>;
  /** Calls `fn` after each change, appearance or removal of the object until the signal aborts. Carries no facts. */
  onChange(ref: ObjectRef, fn: () => void, options: Abortable): void;
}

/** One text per object, for maps. */
export function objectKey({ kind, namespace, name }: ObjectRef): string {
  return `${kind}/${namespace}/${name}`;
}
