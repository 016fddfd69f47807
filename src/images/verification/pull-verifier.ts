import type { ImagePort } from "../../adapters/runtime/port.ts";
import { type Abortable, manyListeners } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Logger } from "../../lib/log.ts";
import { Wakes } from "../../lib/wakes.ts";
import type { PullCredential } from "../../model/pull-credential.ts";
import { accessBy, addAccess, NO_ACCESS, provenAccess } from "./access.ts";
import { intendedImages } from "./intended-images.ts";
import { nameWithoutTag, requiresVerification, type VerificationPolicy } from "./policy.ts";
import type { PulledRecord, RecordedAccess } from "./record-format.ts";
import type { RecordStore } from "./record-store.ts";

/** A runtime that does not answer at the start is asked again after this time, in milliseconds. */
const RETRY_MS = 5000;
/** Records are pruned this long after an image was removed, once for all of a collection, in milliseconds. */
const PRUNE_AFTER_MS = 10_000;
/**
 * When the runtime is asked what came of a pull that was cancelled, in milliseconds: most give up at once, some finish
 * what they have begun.
 */
const LOOK_AFTER_MS = [5000, 300_000];
/** Changes of intents are finished also when the agent stops. */
const always = { signal: manyListeners().signal };

/** Outcomes of a check, as in the metric of Kubernetes. */
export type CheckResult = "credentialPolicyAllowed" | "credentialRecordFound" | "mustAuthenticate" | "error";

/** An image on the node: its name in a container, and its id. */
export interface PresentImage {
  readonly image: string;
  readonly ref: string;
}

export interface PullVerifierDeps {
  readonly store: RecordStore;
  readonly images: Pick<ImagePort, "listImages">;
  readonly clock: Clock;
  readonly log: Logger;
  checked?(result: CheckResult): void;
}

/**
 * Decides whether a pod may use an image that is on the node already, and records who proved it. Every pull begins with
 * an intent and ends with a record, so that an image on the node without either was not pulled by the agent.
 */
export class PullVerifier {
  /** Pulls under way, by image. */
  private readonly pulling = new Map<string, number>();
  private readonly turns = new KeyedMutex();
  private readonly removals: Wakes;
  /** Images that were pulled since their list was begun; undefined if nothing is to be removed by a list. */
  private pulledSince: Set<string> | undefined;

  constructor(
    private readonly deps: PullVerifierDeps,
    private readonly policy: VerificationPolicy,
  ) {
    this.removals = new Wakes(deps.clock);
  }

  /** True if the image must be pulled before the pod may use it. The credentials are fetched only if they decide. */
  async mustPull(present: PresentImage, credentials: () => Promise<readonly PullCredential[]>): Promise<boolean> {
    let result: CheckResult = "error";
    try {
      result = await this.check(present, credentials);
    } finally {
      this.deps.checked?.(result);
    }
    return result === "mustAuthenticate" || result === "error";
  }

  /** Records that the image is about to be pulled; each call that resolves is followed by one of the three below. */
  begin(image: string): Promise<void> {
    const work = async (): Promise<void> => {
      const count = this.pulling.get(image) ?? 0;
      try {
        if (count === 0) await this.deps.store.writeIntent(image);
      } catch (error) {
        throw new Error(`record image pull intent: ${messageOf(error)}`, { cause: error });
      }
      this.pulling.set(image, count + 1);
    };
    return this.turns.run(image, work, always);
  }

  /** Records a successful pull with this credential, none if it was anonymous; `pulled` follows. Never rejects. */
  async record(present: PresentImage, credential: PullCredential | undefined): Promise<void> {
    await this.tryToAdd(present, accessBy(credential));
  }

  /** Records a successful pull, and that it has ended. Never rejects. */
  async pulled(present: PresentImage, credential: PullCredential | undefined): Promise<void> {
    // Otherwise the intent stays: the image still counts as pulled by the agent, and the next start tries again.
    if (await this.tryToAdd(present, accessBy(credential))) await this.end(present.image);
  }

  /** The pull failed, or there was none. Never rejects. */
  failed(image: string): Promise<void> {
    return this.end(image);
  }

  /**
   * The pull was cancelled, or the runtime did not answer: it may have brought the image all the same. The intent stays
   * until that is known, also for the next agent; then the image counts as pulled with unknown credentials. Resolves then,
   * or once the signal aborts. Never rejects.
   */
  async unfinished(image: string, before: string | undefined, { signal }: Abortable): Promise<void> {
    try {
      for (const ms of LOOK_AFTER_MS) {
        await this.deps.clock.sleep(ms, { signal });
        const [found] = intendedImages([image], await this.listImages(signal));
        if (found === undefined) continue;
        const [, ref] = found;
        if (ref !== before && !(await this.tryToAdd({ image, ref }, NO_ACCESS))) return;
        break;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      return;
    }
    await this.end(image);
  }

  /** The image was removed from the node, so that its record is obsolete; it must not be pulled meanwhile. */
  removed(ref: string): void {
    this.removals.wake();
    this.deps.store
      .removeRecord(ref)
      .catch((error: unknown) =>
        this.deps.log.warn("Failed to remove image pulled record", { ref, error: messageOf(error) }),
      );
  }

  /**
   * Turns intents of a killed agent into records and removes records of images that are gone: those that somebody else
   * removed meanwhile follow after each collection, as in Kubernetes. Until the signal aborts.
   */
  async run(signal: AbortSignal): Promise<void> {
    await this.tryToReconcile(signal, async () => {
      const { intents, records } = await this.deps.store.load();
      await this.reconcile(intents, records, signal);
    });
    for (;;) {
      await this.removals.sleep(undefined, signal);
      await this.tryToReconcile(signal, async () => {
        await this.deps.clock.sleep(PRUNE_AFTER_MS, { signal });
        this.removals.clear();
        await this.reconcile([], await this.deps.store.listRecords(), signal);
      });
      if (signal.aborted) return;
    }
  }

  private async tryToReconcile(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!signal.aborted) this.deps.log.warn("Failed to reconcile image pull records", { error: messageOf(error) });
    }
  }

  private async check(
    { image, ref }: PresentImage,
    credentials: () => Promise<readonly PullCredential[]>,
  ): Promise<CheckResult> {
    if (this.policy.policy === "NeverVerify") return "credentialPolicyAllowed";
    let isPulledByAgent: boolean;
    let record: PulledRecord | undefined;
    try {
      // In this order: a pull that ends meanwhile writes its record before it removes its intent.
      const intended = await Promise.allSettled([this.isIntended(image)]);
      record = await this.deps.store.record(ref);
      isPulledByAgent = record !== undefined || valueOf(intended[0]);
    } catch (error) {
      this.deps.log.warn("Failed to read image pull records", { image, ref, error: messageOf(error) });
      return "error";
    }
    if (!requiresVerification(this.policy, { image, isPulledByAgent })) return "credentialPolicyAllowed";
    const recorded = record?.access.get(nameWithoutTag(image)) ?? NO_ACCESS;
    const isRecorded = recorded.isOpen || recorded.secrets.length > 0 || recorded.accounts.length > 0;
    if (!isRecorded) return "mustAuthenticate";
    const proven = provenAccess(recorded, recorded.isOpen ? [] : await credentials());
    if (proven === undefined) return "mustAuthenticate";
    if (proven.add !== undefined) await this.tryToAdd({ image, ref }, proven.add);
    return "credentialRecordFound";
  }

  private async isIntended(image: string): Promise<boolean> {
    return this.pulling.has(image) || this.deps.store.hasIntent(image);
  }

  /** Resolves to whether it is recorded. */
  private async tryToAdd(present: PresentImage, access: RecordedAccess): Promise<boolean> {
    try {
      await this.add(present, access);
      return true;
    } catch (error) {
      this.deps.log.error("Failed to write image pulled record", error, { image: present.image, ref: present.ref });
      return false;
    }
  }

  private add({ image, ref }: PresentImage, access: RecordedAccess): Promise<void> {
    const name = nameWithoutTag(image);
    const updatedAt = this.deps.clock.now().wall;
    this.pulledSince?.add(ref);
    return this.deps.store.update(ref, (known) => {
      const changed = addAccess(known ?? { imageRef: ref, updatedAt, access: new Map() }, name, access);
      return changed === known ? known : { ...changed, updatedAt };
    });
  }

  private end(image: string): Promise<void> {
    const work = async (): Promise<void> => {
      const left = (this.pulling.get(image) ?? 0) - 1;
      if (left > 0) {
        this.pulling.set(image, left);
        return;
      }
      await this.deps.store
        .removeIntent(image)
        .catch((error: unknown) =>
          this.deps.log.warn("Failed to remove image pull intent", { image, error: messageOf(error) }),
        );
      this.pulling.delete(image);
    };
    return this.turns.run(image, work, always);
  }

  private async reconcile(
    intents: readonly string[],
    records: readonly PulledRecord[],
    signal: AbortSignal,
  ): Promise<void> {
    if (intents.length === 0 && records.length === 0) return;
    const listedAt = this.deps.clock.now().wall;
    this.pulledSince = new Set();
    const images = await this.listImages(signal);
    for (const [image, ref] of intendedImages(intents, images)) {
      await this.add({ image, ref }, NO_ACCESS);
      const removeIntent = async (): Promise<void> => {
        if (!this.pulling.has(image)) await this.deps.store.removeIntent(image);
      };
      await this.turns.run(image, removeIntent, always);
      this.deps.log.info("Recorded image of an interrupted pull", { image, ref });
    }
    if (images.length > 0) await this.removeUnknown(records, new Set(images.map(({ id }) => id)), listedAt);
    this.pulledSince = undefined;
  }

  private async listImages(signal: AbortSignal): ReturnType<ImagePort["listImages"]> {
    for (;;) {
      try {
        return await this.deps.images.listImages({ signal });
      } catch (error) {
        signal.throwIfAborted();
        this.deps.log.debug(2, "Failed to list images for image pull records", { error: messageOf(error) });
        await this.deps.clock.sleep(RETRY_MS, { signal });
      }
    }
  }

  private async removeUnknown(
    records: readonly PulledRecord[],
    images: ReadonlySet<string>,
    listedAt: number,
  ): Promise<void> {
    // The time of a record is cut to whole seconds.
    const newest = Math.floor(listedAt / 1000) * 1000;
    for (const { imageRef, updatedAt } of records) {
      if (updatedAt >= newest || images.has(imageRef)) continue;
      await this.deps.store.removeRecord(imageRef, () => this.pulledSince?.has(imageRef) !== true);
    }
  }
}

/** Throws the error of what failed. */
function valueOf<T>(result: PromiseSettledResult<T>): T {
  if (result.status === "rejected") throw result.reason;
  return result.value;
}
