import { createHash } from "node:crypto";
import type { ImageAuth, ImagePort, RuntimeImage, SandboxConfig } from "../adapters/runtime/port.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { type Live, select } from "../lib/live.ts";
import { untilAborted } from "../lib/loop.ts";
import { formatDuration } from "../model/duration.ts";
import { withDefaultTag } from "../model/image-ref.ts";
import type { PullCredential } from "../model/pull-credential.ts";
import { StartError } from "../model/start-error.ts";
import type { ImageCounters } from "./image-metrics.ts";
import { PULL_BACKOFF, PullBackoff } from "./pull-backoff.ts";
import { isAnswer, joinPullErrors, LastAnswers, pullFailure } from "./pull-failure.ts";
import { PullProgressWatch, StuckPullError } from "./pull-progress.ts";
import { PullQueue, type PullQueueOptions } from "./pull-queue.ts";
import type { CredentialSource, ImageAccess, ProviderSource, PullRequest } from "./pull-request.ts";
import { type PullDetail, type PulledImage, type PullWork, SharedPulls } from "./shared-pulls.ts";

/** A failed ImageStatus call says nothing about the image, so it is retried soon. */
const INSPECT_RETRY_MS = 1000;

export interface PullerOptions extends PullQueueOptions {
  /** A pull during which nothing arrives for so long is cancelled; 0 or undefined: never. */
  readonly progressTimeoutMs?: number;
}

/** Ensures that images exist on the node, by the pull policy of each container. */
export class ImagePuller {
  private readonly backoff = new PullBackoff();
  private readonly pulls: SharedPulls;
  private readonly queue: PullQueue;
  private readonly progress: PullProgressWatch;
  private readonly answers = new LastAnswers();

  constructor(
    private readonly deps: {
      images: ImagePort;
      clock: Clock;
      credentials?: CredentialSource;
      /** The node's own credentials, tried after the pod's. */
      nodeCredentials?: { forImage(image: string): Promise<readonly PullCredential[]> };
      /** Tried last. */
      providers?: ProviderSource | undefined;
      /** Undefined if every pod may use every image on the node. */
      access?: ImageAccess | undefined;
      counted?: ImageCounters;
      /** True if image calls name the pod's runtime handler (feature gate RuntimeClassInImageCriApi). */
      namesHandler?: boolean;
    },
    options: Live<PullerOptions>,
    private readonly agent: AbortSignal,
  ) {
    this.queue = new PullQueue(deps.clock, options, agent);
    this.progress = new PullProgressWatch(
      deps,
      select(options, ({ progressTimeoutMs = 0 }) => ({ progressTimeoutMs })),
    );
    this.pulls = new SharedPulls(agent);
  }

  /** Loads the credential providers and the records of earlier pulls. Rejects if the configuration is invalid. */
  async run(signal: AbortSignal): Promise<void> {
    const { providers, access } = this.deps;
    await Promise.all([providers?.check(), access?.run(signal), untilAborted(signal)]);
  }

  /** The image with this id was removed from the node: what is recorded of it is obsolete. */
  imageRemoved(ref: string): void {
    this.deps.access?.removed(ref);
  }

  /** Resolves to the image that the container is created from. Rejects with a `StartError` of an image reason. */
  async ensure(request: PullRequest, options: Abortable): Promise<{ ref: string; image: RuntimeImage }> {
    const policy = request.container.imagePullPolicy ?? "IfNotPresent";
    const found: EnsureFacts = { isPresent: undefined, isRequired: undefined };
    try {
      return await this.ensureBy(policy, { request, found }, options);
    } finally {
      this.deps.counted?.asked({ policy, ...found });
    }
  }

  private async ensureBy(
    policy: string,
    { request, found }: { request: PullRequest; found: EnsureFacts },
    options: Abortable,
  ): Promise<{ ref: string; image: RuntimeImage }> {
    const { container, journal } = request;
    const name = this.fullName(request);
    const runtimeHandler = this.deps.namesHandler === true ? await request.runtimeHandler?.() : undefined;
    const credentials = once(() => this.credentials(name, request, options));
    const needed = { name, request, credentials, runtimeHandler };
    const present: RuntimeImage | undefined = policy === "Always" ? undefined : await this.inspect(needed, options);
    if (policy !== "Always") found.isPresent = present !== undefined;
    if (present !== undefined) found.isRequired = await this.mustPull(needed, present);
    if (present !== undefined && found.isRequired === false) {
      const ending = this.deps.access === undefined ? "" : " and can be accessed by the pod";
      const text = `Container image "${container.image}" already present on machine${ending}`;
      journal.event("Normal", "Pulled", { message: text, container: container.name });
      return { ref: present.id, image: present };
    }
    if (policy === "Never") {
      // Also for an image that the pod may not use: its presence is not revealed, as in Kubernetes.
      const message = `Container image "${container.image}" is not present with pull policy of Never`;
      journal.event("Warning", "ErrImageNeverPull", { message, container: container.name });
      throw refusal(request, "ErrImageNeverPull", { afterMs: PULL_BACKOFF.initialMs, message });
    }
    found.isRequired = true;
    return this.pull({ ...needed, present }, options);
  }

  private fullName(request: PullRequest): string {
    const { container, journal } = request;
    try {
      return withDefaultTag(container.image ?? "");
    } catch (error) {
      const message = `Failed to apply default image tag "${container.image}": ${messageOf(error)}`;
      journal.event("Warning", "InspectFailed", { message, container: container.name });
      throw refusal(request, "InvalidImageName", { afterMs: PULL_BACKOFF.maxMs, message, cause: error });
    }
  }

  private async inspect(needed: NeededImage, options: Abortable): Promise<RuntimeImage | undefined> {
    const { name, request } = needed;
    try {
      return await this.status(needed, options);
    } catch (error) {
      if (options.signal.aborted) throw error;
      const message = `Failed to inspect image "${name}": ${messageOf(error)}`;
      request.journal.event("Warning", "InspectFailed", { message, container: request.container.name });
      throw refusal(request, "ImageInspectError", { afterMs: INSPECT_RETRY_MS, message, cause: error });
    }
  }

  private status({ name, runtimeHandler }: NeededImage, { signal }: Abortable): Promise<RuntimeImage | undefined> {
    return this.deps.images.imageStatus(name, { signal, ...(runtimeHandler && { runtimeHandler }) });
  }

  /** True if the pod may use the image on the node only after a pull of its own. */
  private async mustPull({ request, credentials }: NeededImage, { id }: RuntimeImage): Promise<boolean> {
    const image = request.container.image ?? "";
    return (await this.deps.access?.mustPull({ image, ref: id }, credentials)) ?? false;
  }

  private async pull(needed: NeededImage, options: Abortable): Promise<{ ref: string; image: RuntimeImage }> {
    const { name, request } = needed;
    const { container, journal } = request;
    this.requireTurn(request);
    request.slot.release();
    const began = this.deps.clock.now().mono;
    const step = journal.begin("pull", { container: container.name, detail: container.image ?? "" });
    journal.event("Normal", "Pulling", { message: `Pulling image "${container.image}"`, container: container.name });
    try {
      const onDetail = ({ text, progress, isWaiting }: PullDetail): void => {
        step.detail(`${container.image}: ${text}`, progress);
        request.onWait?.(isWaiting === true ? text : undefined);
      };
      const { pulled, image } = await this.pullRecorded(needed, { signal: options.signal, onDetail });
      this.answers.succeeded(name);
      const totalMs = this.deps.clock.now().mono - began;
      this.deps.counted?.pulled(totalMs, image.sizeBytes);
      const total = wholeMs(totalMs);
      const text = `Successfully pulled image "${container.image}" in ${wholeMs(pulled.tookMs)} (${total} including waiting). Image size: ${image.sizeBytes} bytes.`;
      step.done(`${container.image} in ${total}`);
      journal.event("Normal", "Pulled", { message: text, container: container.name });
      return { ref: image.id, image };
    } catch (error) {
      if (options.signal.aborted) {
        step.abort();
        throw error;
      }
      const failure = this.answers.failed(name, error);
      step.fail(failure);
      throw this.pullFailed(request, failure);
    } finally {
      request.onWait?.(undefined);
    }
  }

  /** Pulls the image, between the intent and the record of its pull. */
  private async pullRecorded(
    needed: NeededImage,
    work: PullWork,
  ): Promise<{ pulled: PulledImage; image: RuntimeImage }> {
    const { access } = this.deps;
    const { name, request, credentials, runtimeHandler } = needed;
    const { container, pod } = request;
    const found = await credentials();
    const auths = found.map(({ auth }) => auth);
    const sandbox = await request.sandbox?.();
    const image = container.image ?? "";
    const record = async ({ ref, credential = -1 }: Pick<PulledImage, "ref" | "credential">): Promise<void> =>
      access?.record({ image, ref }, found[credential]);
    const { annotations } = pod.metadata;
    const wanted = { image: name, auths, annotations, sandbox, runtimeHandler, record };
    const arrived = (shared: PullWork): Promise<RuntimeImage | undefined> => this.arrived(needed, shared);
    const pull = (shared: PullWork): Promise<PulledImage> => this.pullInTurn(wanted, arrived, shared);
    const [before] = await Promise.all([access && this.idBefore(needed, work), access?.begin(image)]);
    let pulled: PulledImage | undefined;
    let status: RuntimeImage | undefined;
    let isUnfinished = false;
    try {
      pulled = await this.pulls.join(pullKey(name, request, auths), { ...work, pull });
      status = await this.status(needed, work);
      if (status === undefined) throw new Error(`inspect pulled image: ${pulled.ref} not found`);
      return { pulled, image: status };
    } catch (error) {
      isUnfinished = pulled === undefined && (work.signal.aborted || !isAnswer(error));
      throw error;
    } finally {
      if (isUnfinished) void access?.unfinished(image, before, { signal: this.agent });
      else if (pulled === undefined || pulled.isReused === true) await access?.failed(image);
      else await access?.pulled({ image, ref: status?.id ?? pulled.ref }, found[pulled.credential ?? -1]);
    }
  }

  /** The id of the image before it is pulled; undefined if it is not there, or not known to be. */
  private async idBefore(needed: NeededImage, work: Abortable): Promise<string | undefined> {
    if (needed.present !== undefined) return needed.present.id;
    if (needed.request.container.imagePullPolicy !== "Always") return undefined;
    return (await this.status(needed, work).catch(() => undefined))?.id;
  }

  /** The pod's credentials first, then the node's, then those of credential providers, as in Kubernetes. */
  private async credentials(
    image: string,
    request: PullRequest,
    options: Abortable,
  ): Promise<readonly PullCredential[]> {
    const { credentials, nodeCredentials, providers } = this.deps;
    // A plugin may take a minute: other pods start meanwhile.
    if (providers !== undefined) request.slot.release();
    const found = await Promise.all([
      credentials?.(request, options),
      nodeCredentials?.forImage(image),
      providers?.forImage(image, request.pod, options),
    ]);
    return found.flatMap((part) => part ?? []);
  }

  /** Rejects while a failed pull of the image for this pod, by another container perhaps, holds the next one back. */
  private requireTurn(request: PullRequest): void {
    const held = this.backoff.heldBack(backoffKey(request), this.deps.clock.now());
    if (held === undefined) return;
    const waits = backedOff(request);
    throw refusal(request, "ImagePullBackOff", { afterMs: held.afterMs, message: `${waits}: ${held.cause}` });
  }

  private pullFailed(request: PullRequest, error: unknown): StartError {
    const { container, journal } = request;
    const { reason, message } = pullFailure(container.image ?? "", error);
    const event = (what: string, text: string): void =>
      journal.event("Warning", what, { message: text, container: container.name });
    if (error instanceof StuckPullError) event("ImagePullStuck", message);
    event("Failed", `Failed to pull image "${container.image}": ${messageOf(error)}`);
    event("Failed", `Error: ${reason}`);
    const cause = `${reason}: ${message}`;
    const afterMs = this.backoff.failed(backoffKey(request), cause, this.deps.clock.now());
    const waits = backedOff(request);
    event("Failed", "Error: ImagePullBackOff");
    const retry = { afterMs, reason: "ImagePullBackOff", message: `${waits}: ${cause}` };
    return new StartError(reason, retry, { message, cause: error });
  }

  /**
   * Tries each credential in turn until one is accepted; without credentials it pulls anonymously. Rejects with the
   * errors of all credentials.
   */
  private async pullAs(
    { image, auths, annotations, sandbox, runtimeHandler }: Pull,
    options: Abortable,
  ): Promise<Pick<PulledImage, "ref" | "credential">> {
    const errors: unknown[] = [];
    for (const [credential, auth] of auths.length === 0 ? [[undefined, undefined] as const] : auths.entries()) {
      const request = {
        ...(auth && { auth }),
        ...(annotations && { annotations }),
        ...(sandbox && { sandbox }),
        ...(runtimeHandler && { runtimeHandler }),
      };
      try {
        const ref = await this.deps.images.pullImage(image, request, options);
        return credential === undefined ? { ref } : { ref, credential };
      } catch (error) {
        if (options.signal.aborted) throw error;
        errors.push(error);
      }
    }
    throw joinPullErrors(errors);
  }

  /** The image as another pull has brought it, if the pod may use it without a pull of its own. */
  private async arrived(needed: NeededImage, work: PullWork): Promise<RuntimeImage | undefined> {
    if (needed.request.container.imagePullPolicy === "Always") return undefined;
    try {
      const image = await this.status(needed, work);
      return image === undefined || (await this.mustPull(needed, image)) ? undefined : image;
    } catch (error) {
      if (work.signal.aborted) throw error;
      return undefined;
    }
  }

  /** One real pull: waits for its turn, then calls the runtime. */
  private pullInTurn(
    wanted: Pull,
    arrived: (work: PullWork) => Promise<RuntimeImage | undefined>,
    work: PullWork,
  ): Promise<PulledImage> {
    const { clock } = this.deps;
    const pull = async (): Promise<PulledImage> => {
      work.onDetail({ text: "pulling" });
      const began = clock.now().mono;
      const pulled = await this.progress.during(wanted.image, work, (options) => this.pullAs(wanted, options));
      return { ...pulled, tookMs: clock.now().mono - began };
    };
    const reuse = async (): Promise<PulledImage | undefined> => {
      const image = await arrived(work);
      return image && { ref: image.id, tookMs: 0, isReused: true };
    };
    const pulled = (image: PulledImage): Promise<void> => wanted.record(image);
    const queued = { image: wanted.image, arrived: reuse, pull, pulled };
    return this.queue.run(queued, work);
  }
}

/** What is known of a request when it ends, for its metric; undefined if it ended before that was known. */
interface EnsureFacts {
  isPresent: boolean | undefined;
  isRequired: boolean | undefined;
}

/** An image that a container needs; the credentials are looked up once. */
interface NeededImage {
  readonly name: string;
  /** The image on the node, which the pod may not use; undefined if there is none, or if nobody asked. */
  readonly present?: RuntimeImage | undefined;
  readonly runtimeHandler: string | undefined;
  readonly request: PullRequest;
  credentials(): Promise<readonly PullCredential[]>;
}

/** What the runtime is asked to pull. */
interface Pull {
  readonly image: string;
  readonly auths: readonly ImageAuth[];
  readonly annotations: Readonly<Record<string, string>> | undefined;
  readonly sandbox: SandboxConfig | undefined;
  readonly runtimeHandler: string | undefined;
  /** Called after the pull, before another one of the image begins. */
  record(pulled: Pick<PulledImage, "ref" | "credential">): Promise<void>;
}

/**
 * Equal for pulls that may be shared: the runtime may decide by namespace (CRI-O's signature policies), runtime class,
 * annotations and credentials which registry, policy and snapshotter it uses. Annotations that the kubelet sets itself
 * do not count. Pulls with other keys follow one another, so that what one has brought is not transferred again.
 */
function pullKey(image: string, { pod, container }: PullRequest, auths: readonly ImageAuth[]): string {
  const { namespace = "", annotations = {} } = pod.metadata;
  const own = Object.entries(annotations).filter(([name]) => !name.startsWith("kubernetes.io/config."));
  const hash = createHash("sha256").update(JSON.stringify([own.sort(), auths]));
  const always = container.imagePullPolicy === "Always" ? "Always" : "";
  return [image, namespace, pod.spec.runtimeClassName ?? "", always, hash.digest("hex")].join(" ");
}

/** Records that an image is held back; returns the message of it. */
function backedOff({ container, journal }: PullRequest): string {
  const message = `Back-off pulling image "${container.image}"`;
  journal.event("Normal", "BackOff", { message, container: container.name });
  return message;
}

/** The error of a start that needs another image, recorded as an event as in Kubernetes. */
function refusal(
  { container, journal }: PullRequest,
  reason: string,
  { afterMs, message, cause }: { afterMs: number; message: string; cause?: unknown },
): StartError {
  journal.event("Warning", "Failed", { message: `Error: ${reason}`, container: container.name });
  return new StartError(reason, { afterMs }, { message, cause });
}

function backoffKey({ pod, container }: PullRequest): string {
  return `${pod.metadata.uid}_${container.image}`;
}

/** Whole milliseconds in the form of Go, as in the events of Kubernetes: `1m2.5s`. */
function wholeMs(ms: number): string {
  return formatDuration(Math.floor(ms));
}

/** Calls `fn` at the first use and returns the same promise from then on. */
function once<T>(fn: () => Promise<T>): () => Promise<T> {
  let first: Promise<T> | undefined;
  return () => {
    first ??= fn();
    return first;
  };
}
