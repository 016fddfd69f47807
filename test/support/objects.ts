import type { Abortable } from "../../src/lib/abort.ts";
import {
  type ObjectKind,
  type ObjectKinds,
  type ObjectRef,
  type ObjectSource,
  objectKey,
} from "../../src/model/object-source.ts";

/** Objects that a test puts in and takes out; it knows who listens, and can be told to fail. */
export class FakeObjects implements ObjectSource {
  private readonly objects = new Map<string, unknown>();
  private readonly listeners = new Map<string, Set<() => void>>();
  /** Every `get` rejects with this while it is set. */
  fault: Error | undefined;
  reads = 0;

  put<K extends ObjectKind>(ref: ObjectRef<K>, object: ObjectKinds[K]): void {
    this.objects.set(objectKey(ref), object);
    this.tell(ref);
  }

  remove(ref: ObjectRef): void {
    this.objects.delete(objectKey(ref));
    this.tell(ref);
  }

  get<K extends ObjectKind>(ref: ObjectRef<K>, { signal }: Abortable): Promise<ObjectKinds[K] | undefined> {
    this.reads++;
    signal.throwIfAborted();
    if (this.fault !== undefined) return Promise.reject(this.fault);
    // What was put under the key is of its kind.
    return Promise.resolve(this.objects.get(objectKey(ref)) as ObjectKinds[K] | undefined);
  }

  onChange(ref: ObjectRef, fn: () => void, { signal }: Abortable): void {
    const all = this.listeners.get(objectKey(ref)) ?? new Set();
    this.listeners.set(objectKey(ref), all.add(fn));
    signal.addEventListener("abort", () => void all.delete(fn), { once: true });
  }

  /** How many listen to an object. */
  listening(ref: ObjectRef): number {
    return this.listeners.get(objectKey(ref))?.size ?? 0;
  }

  /** Replace it to have objects that change and nobody hears of it. */
  tell = (ref: ObjectRef): void => {
    for (const fn of [...(this.listeners.get(objectKey(ref)) ?? [])]) fn();
  };
}

export function configMap(
  name: string,
  data: Record<string, string>,
): [ObjectRef<"ConfigMap">, ObjectKinds["ConfigMap"]] {
  const namespace = "default";
  return [
    { kind: "ConfigMap", namespace, name },
    { metadata: { name, namespace }, data },
  ];
}

export function secret(name: string, data: Record<string, string>): [ObjectRef<"Secret">, ObjectKinds["Secret"]] {
  const namespace = "default";
  return [
    { kind: "Secret", namespace, name },
    { metadata: { name, namespace }, stringData: data },
  ];
}
