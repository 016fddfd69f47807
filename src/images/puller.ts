import { createHash } from "node:crypto";
import type { ImageAuth, ImagePort, RuntimeImage, SandboxConfig } from "../adapters/runtime/port.ts";
import type { Abortable } from "../lib/abort.ts";
import { KeyedBackoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { Lane } from "../lib/lane.ts";
import { type Live, select } from "../lib/live.ts";
import { TokenBucket } from "../lib/token-bucket.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { withDefaultTag } from "../model/image-ref.ts";
import { StartError } from "../model/start-error.ts";
import type { ImageCounters } from "./image-metrics.ts";
import { joinPullErrors, pullFailure } from "./pull-failure.ts";
import { type PulledImage, type PullWork, SharedPulls } from "./shared-pulls.ts";

/** 10 s doubling to 5 min, reset 10 min after the last failure's wait, as in Kubernetes. */
const BACKOFF = { initialMs: 10_000, maxMs: 300_000, resetAfterMs: 600_000 };
/** A failed ImageStatus call says nothing about the image, so it is retried soon. */
const INSPECT_RETRY_MS = 1000;

/** Where the puller records its steps and events: the pod's journal. */
export interface PullJournal {
  begin(
    step: "pull",
    options: { container: string; detail: string },
  ): { detail(text: string): void; done(detail?: string): void; fail(error: unknown): void; abort(): void };
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

export interface PullerOptions {
  /** Maximum number of parallel pulls; 1 pulls serially, 0 has no limit. */
  readonly parallel: number;
  readonly qps: number;
  readonly burst: number;
}

/** Ensures that images exist on the node, by the pull policy of each container. */
export class ImagePuller {
  private readonly backoff = new KeyedBackoff<string>(BACKOFF);
  private readonly pulls: SharedPulls;
  private readonly bucket: TokenBucket;
  private readonly lane: Lane;

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
    this.bucket = new TokenBucket(deps.clock, options);
    this.lane = new Lane(
      select(options, ({ parallel }) => parallel),
      { signal },
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
      throw new StartError("ErrImageNeverPull", { afterMs: BACKOFF.initialMs }, { message });
    }
    return this.pull(name, request, options);
  }

  private fullName({ container, journal }: PullRequest): string {
    try {
      return withDefaultTag(container.image ?? "");
    } catch (error) {
      const message = `Failed to apply default image tag "${container.image}": ${messageOf(error)}`;
      journal.event("Warning", "InspectFailed", { message, container: container.name });
      throw new StartError("InvalidImageName", { afterMs: BACKOFF.maxMs }, { message, cause: error });
    }
  }

  private async inspect(name: string, request: PullRequest, options: Abortable): Promise<RuntimeImage | undefined> {
    try {
      return await this.deps.images.imageStatus(name, options);
    } catch (error) {
      if (options.signal.aborted) throw error;
      const message = `Failed to inspect image "${name}": ${messageOf(error)}`;
      request.journal.event("Warning", "InspectFailed", { message, container: request.container.name });
      throw new StartError("ImageInspectError", { afterMs: INSPECT_RETRY_MS }, { message, cause: error });
    }
  }

  private async pull(
    name: string,
    request: PullRequest,
    options: Abortable,
  ): Promise<{ ref: string; image: RuntimeImage }> {
    const { container, journal } = request;
    request.slot.release();
    const began = this.deps.clock.now().mono;
    const step = journal.begin("pull", { container: container.name, detail: container.image ?? "" });
    journal.event("Normal", "Pulling", { message: `Pulling image "${container.image}"`, container: container.name });
    try {
      const onDetail = (text: string): void => step.detail(`${container.image}: ${text}`);
      const auths = await this.credentials(name, request, options);
      const sandbox = await request.sandbox?.();
      const pull = (work: PullWork): Promise<PulledImage> =>
        this.pullInTurn({ image: name, auths, annotations: request.pod.metadata.annotations, sandbox }, work);
      const pulled = await this.pulls.join(pullKey(name, request.pod, auths), {
        pull,
        onDetail,
        signal: options.signal,
      });
      const image = await this.deps.images.imageStatus(name, options);
      if (image === undefined) throw new Error(`inspect pulled image: ${pulled.ref} not found`);
      this.backoff.reset(backoffKey(request));
      this.deps.counted?.pulled(pulled.tookMs, image.sizeBytes);
      const total = seconds(this.deps.clock.now().mono - began);
      const text = `Successfully pulled image "${container.image}" in ${seconds(pulled.tookMs)} (${total} including waiting). Image size: ${image.sizeBytes} bytes.`;
      step.done(`${container.image} in ${total}`);
      journal.event("Normal", "Pulled", { message: text, container: container.name });
      return { ref: image.id, image };
    } catch (error) {
      if (options.signal.aborted) {
        step.abort();
        throw error;
      }
      step.fail(error);
      throw this.pullFailed(request, error);
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

  private pullFailed(request: PullRequest, error: unknown): StartError {
    const { container, journal } = request;
    const event = (type: "Normal" | "Warning", reason: string, message: string): void =>
      journal.event(type, reason, { message, container: container.name });
    const { reason, message } = pullFailure(container.image ?? "", error);
    event("Warning", "Failed", `Failed to pull image "${container.image}": ${messageOf(error)}`);
    event("Warning", "Failed", `Error: ${reason}`);
    const now = this.deps.clock.now();
    // Deleted pods leave entries behind; they are dropped when other pulls fail.
    this.backoff.evictOlderThan(BACKOFF.resetAfterMs, now);
    const afterMs = this.backoff.next(backoffKey(request), now);
    const waits = `Back-off pulling image "${container.image}"`;
    event("Normal", "BackOff", waits);
    event("Warning", "Failed", "Error: ImagePullBackOff");
    const retry = { afterMs, reason: "ImagePullBackOff", message: `${waits}: ${reason}: ${message}` };
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

  /** One real pull: waits for its turn and for the rate limit, then calls the runtime. */
  private pullInTurn(wanted: Pull, work: PullWork): Promise<PulledImage> {
    const { clock } = this.deps;
    const pull = async (): Promise<PulledImage> => {
      await this.bucket.take(work);
      work.onDetail("pulling");
      const began = clock.now().mono;
      const ref = await this.pullAs(wanted, work);
      return { ref, tookMs: clock.now().mono - began };
    };
    const onPosition = (position: number): void => {
      if (position > 0) work.onDetail(`place ${position} in the pull queue`);
    };
    return this.lane.run(pull, { signal: work.signal, onPosition });
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
 * Equal for pulls that may be shared: the runtime may decide by namespace, runtime class, annotations and credentials
 * which registry, policy and snapshotter it uses. Annotations that the kubelet sets itself do not count.
 */
function pullKey(image: string, { metadata, spec }: Pod, auths: readonly ImageAuth[]): string {
  const { namespace = "", annotations = {} } = metadata;
  const own = Object.entries(annotations).filter(([name]) => !name.startsWith("kubernetes.io/config."));
  const hash = createHash("sha256").update(JSON.stringify([own.sort(), auths]));
  return [image, namespace, spec.runtimeClassName ?? "", hash.digest("hex")].join(" ");
}

function backoffKey({ pod, container }: PullRequest): string {
  return `${pod.metadata.uid}_${container.image}`;
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)}ms` : `${(ms / 1000).toFixed(3)}s`;
}
