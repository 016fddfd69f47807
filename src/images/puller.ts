import { createHash } from "node:crypto";
import type { ImageAuth, ImagePort, RuntimeImage, SandboxConfig } from "../adapters/runtime/port.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { type Live, select } from "../lib/live.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { withDefaultTag } from "../model/image-ref.ts";
import { StartError } from "../model/start-error.ts";
import type { StepProgress } from "../model/step.ts";
import type { ImageCounters } from "./image-metrics.ts";
import { PULL_BACKOFF, PullBackoff } from "./pull-backoff.ts";
import { joinPullErrors, LastAnswers, pullFailure } from "./pull-failure.ts";
import { PullProgressWatch, StuckPullError } from "./pull-progress.ts";
import { PullQueue, type PullQueueOptions } from "./pull-queue.ts";
import { type PullDetail, type PulledImage, type PullWork, SharedPulls } from "./shared-pulls.ts";

/** A failed ImageStatus call says nothing about the image, so it is retried soon. */
const INSPECT_RETRY_MS = 1000;

/** Where the puller records its steps and events: the pod's journal. */
export interface PullJournal {
  begin(
    step: "pull",
    options: { container: string; detail: string },
  ): {
    detail(text: string, progress?: StepProgress): void;
    done(detail?: string): void;
    fail(error: unknown): void;
    abort(): void;
  };
  event(type: "Normal" | "Warning", reason: string, what: string | { message: string; container: string }): void;
}

/** Returns the credentials for a pod's image, in the order in which they are tried. */
export type CredentialSource = (request: PullRequest, options: Abortable) => Promise<readonly ImageAuth[]>;

/** Which image, for whom. */
export interface PullRequest {
  readonly pod: Pod;
  readonly container: Container;
  readonly journal: PullJournal;
  /** Released while a pull goes on, so that other pods start meanwhile. */
  readonly slot: { release(): void };
  /** The pod's sandbox configuration, which the runtime gets with the pull; called only if the image is pulled. */
  sandbox?(): Promise<SandboxConfig>;
}

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
      nodeCredentials?: { forImage(image: string): Promise<readonly ImageAuth[]> };
      counted?: ImageCounters;
    },
    options: Live<PullerOptions>,
    signal: AbortSignal,
  ) {
    this.queue = new PullQueue(deps.clock, options, signal);
    this.progress = new PullProgressWatch(
      deps,
      select(options, ({ progressTimeoutMs = 0 }) => ({ progressTimeoutMs })),
    );
    this.pulls = new SharedPulls(signal);
  }

  /** Resolves to the image that the container is created from. Rejects with a `StartError` of an image reason. */
  async ensure(request: PullRequest, options: Abortable): Promise<{ ref: string; image: RuntimeImage }> {
    const { container, journal } = request;
    const name = this.fullName(request);
    const policy = container.imagePullPolicy ?? "IfNotPresent";
    if (policy === "Always") {
      this.deps.counted?.asked({ isPresent: undefined, policy, isRequired: true });
      return this.pull(name, request, options);
    }
    const present = await this.inspect(name, request, options);
    const isRequired = present === undefined && policy !== "Never";
    this.deps.counted?.asked({ isPresent: present !== undefined, policy, isRequired });
    if (present !== undefined) {
      const text = `Container image "${container.image}" already present on machine and can be accessed by the pod`;
      journal.event("Normal", "Pulled", { message: text, container: container.name });
      return { ref: present.id, image: present };
    }
    if (policy === "Never") {
      const message = `Container image "${container.image}" is not present with pull policy of Never`;
      journal.event("Warning", "ErrImageNeverPull", { message, container: container.name });
      throw refusal(request, "ErrImageNeverPull", { afterMs: PULL_BACKOFF.initialMs, message });
    }
    return this.pull(name, request, options);
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

  private async inspect(name: string, request: PullRequest, options: Abortable): Promise<RuntimeImage | undefined> {
    try {
      return await this.deps.images.imageStatus(name, options);
    } catch (error) {
      if (options.signal.aborted) throw error;
      const message = `Failed to inspect image "${name}": ${messageOf(error)}`;
      request.journal.event("Warning", "InspectFailed", { message, container: request.container.name });
      throw refusal(request, "ImageInspectError", { afterMs: INSPECT_RETRY_MS, message, cause: error });
    }
  }

  private async pull(
    name: string,
    request: PullRequest,
    options: Abortable,
  ): Promise<{ ref: string; image: RuntimeImage }> {
    const { container, journal } = request;
    this.requireTurn(request);
    request.slot.release();
    const began = this.deps.clock.now().mono;
    const step = journal.begin("pull", { container: container.name, detail: container.image ?? "" });
    journal.event("Normal", "Pulling", { message: `Pulling image "${container.image}"`, container: container.name });
    try {
      const onDetail = ({ text, progress }: PullDetail): void => step.detail(`${container.image}: ${text}`, progress);
      const auths = await this.credentials(name, request, options);
      const sandbox = await request.sandbox?.();
      const wanted = { image: name, auths, annotations: request.pod.metadata.annotations, sandbox };
      const arrived = (work: PullWork): Promise<RuntimeImage | undefined> => this.arrived(name, request, work);
      const pull = (work: PullWork): Promise<PulledImage> => this.pullInTurn(wanted, arrived, work);
      const pulled = await this.pulls.join(pullKey(name, request, auths), {
        pull,
        onDetail,
        signal: options.signal,
      });
      const image = await this.deps.images.imageStatus(name, options);
      if (image === undefined) throw new Error(`inspect pulled image: ${pulled.ref} not found`);
      this.answers.succeeded(name);
      const totalMs = this.deps.clock.now().mono - began;
      this.deps.counted?.pulled(totalMs, image.sizeBytes);
      const total = seconds(totalMs);
      const text = `Successfully pulled image "${container.image}" in ${seconds(pulled.tookMs)} (${total} including waiting). Image size: ${image.sizeBytes} bytes.`;
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
    }
  }

  /** The pod's credentials first, then the node's, as in Kubernetes. */
  private async credentials(image: string, request: PullRequest, options: Abortable): Promise<readonly ImageAuth[]> {
    const [pods = [], nodes = []] = await Promise.all([
      this.deps.credentials?.(request, options),
      this.deps.nodeCredentials?.forImage(image),
    ]);
    return [...pods, ...nodes];
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
  private async pullAs({ image, auths, annotations, sandbox }: Pull, options: Abortable): Promise<string> {
    const errors: unknown[] = [];
    for (const auth of auths.length === 0 ? [undefined] : auths) {
      const request = { ...(auth && { auth }), ...(annotations && { annotations }), ...(sandbox && { sandbox }) };
      try {
        return await this.deps.images.pullImage(image, request, options);
      } catch (error) {
        if (options.signal.aborted) throw error;
        errors.push(error);
      }
    }
    throw joinPullErrors(errors);
  }

  /** The image as another pull has brought it, if the pod may use it without a pull of its own. */
  private async arrived(name: string, { container }: PullRequest, work: PullWork): Promise<RuntimeImage | undefined> {
    if (container.imagePullPolicy === "Always") return undefined;
    return this.deps.images.imageStatus(name, work).catch((error: unknown) => {
      if (work.signal.aborted) throw error;
      return undefined;
    });
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
      const ref = await this.progress.during(wanted.image, work, (options) => this.pullAs(wanted, options));
      return { ref, tookMs: clock.now().mono - began };
    };
    const reuse = async (): Promise<PulledImage | undefined> => {
      const image = await arrived(work);
      return image && { ref: image.id, tookMs: 0 };
    };
    return this.queue.run({ image: wanted.image, arrived: reuse, pull }, work);
  }
}

/** What the runtime is asked to pull. */
interface Pull {
  readonly image: string;
  readonly auths: readonly ImageAuth[];
  readonly annotations: Readonly<Record<string, string>> | undefined;
  readonly sandbox: SandboxConfig | undefined;
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

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)}ms` : `${(ms / 1000).toFixed(3)}s`;
}
