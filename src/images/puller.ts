import { createHash } from "node:crypto";
import type { ImageAuth, ImagePort, RuntimeImage } from "../adapters/runtime/port.ts";
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
import { SharedPulls } from "./shared-pulls.ts";

/** 10 s doubling to 5 min, forgotten 10 min after the last failure's wait, as in Kubernetes. */
const BACKOFF = { initialMs: 10_000, maxMs: 300_000, resetAfterMs: 600_000 };
/** A failed look-up of the image says nothing about the image, so it is asked again soon. */
const INSPECT_RETRY_MS = 1000;

/** Where the puller writes down what it does; the pod's journal. */
export interface PullJournal {
  begin(
    step: "pull",
    options: { container: string; detail: string },
  ): { detail(text: string): void; done(detail?: string): void; fail(error: unknown): void; abort(): void };
  event(type: "Normal" | "Warning", reason: string, what: string | { message: string; container: string }): void;
}

/** Where the credentials of a pod for an image come from, the ones to try first before the others. */
export type CredentialSource = (request: PullRequest, options: Abortable) => Promise<readonly ImageAuth[]>;

/** Which image, for whom. */
export interface PullRequest {
  readonly pod: Pod;
  readonly container: Container;
  readonly journal: PullJournal;
  /** Given back while a pull goes on, so that other pods start meanwhile. */
  readonly slot: { release(): void };
}

export interface PullerOptions {
  /** How many pulls may go on at once; 1 pulls one after the other, 0 has no limit. */
  readonly parallel: number;
  readonly qps: number;
  readonly burst: number;
}

/** Makes sure that images are there, by the pull policy of each container (section 10 of the reference). */
export class ImagePuller {
  private readonly backoff = new KeyedBackoff<string>(BACKOFF);
  private readonly pulls: SharedPulls;
  private readonly wanted = new Map<string, { readonly image: string; readonly auths: readonly ImageAuth[] }>();
  private readonly bucket: TokenBucket;
  private readonly lane: Lane;

  constructor(
    private readonly deps: {
      images: ImagePort;
      clock: Clock;
      credentials?: CredentialSource;
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
    this.pulls = new SharedPulls((key, work) => this.pullInTurn(key, work), signal);
  }

  /** Resolves to the image that the container is made from. Rejects with a `StartError` of an image reason. */
  async ensure(request: PullRequest, options: Abortable): Promise<{ ref: string; image: RuntimeImage }> {
    const { container, journal } = request;
    const name = this.fullName(request);
    const policy = container.imagePullPolicy ?? "IfNotPresent";
    const present = await this.inspect(name, request, options);
    const isRequired = present === undefined ? policy !== "Never" : policy === "Always";
    this.deps.counted?.asked({ isPresent: present !== undefined, policy, isRequired });
    if (present !== undefined && policy !== "Always") {
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
      const key = await this.keyOf(name, request, options);
      const pulled = await this.pulls.join(key, { onDetail, signal: options.signal });
      const image = await this.deps.images.imageStatus(name, options);
      if (image === undefined) throw new Error(`the image is missing right after its pull (${pulled.ref})`);
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

  private pullFailed(request: PullRequest, error: unknown): StartError {
    const { container, journal } = request;
    const text = messageOf(error);
    journal.event("Warning", "Failed", {
      message: `Failed to pull image "${container.image}": ${text}`,
      container: container.name,
    });
    journal.event("Warning", "Failed", { message: "Error: ErrImagePull", container: container.name });
    const now = this.deps.clock.now();
    // Pods that went away never say so here; what they left is dropped when others fail.
    this.backoff.evictOlderThan(BACKOFF.resetAfterMs, now);
    const afterMs = this.backoff.next(backoffKey(request), now);
    const waits = `Back-off pulling image "${container.image}"`;
    journal.event("Normal", "BackOff", { message: waits, container: container.name });
    journal.event("Warning", "Failed", { message: "Error: ImagePullBackOff", container: container.name });
    const message = `${waits}: ErrImagePull: ${text}`;
    return new StartError(
      "ErrImagePull",
      { afterMs, reason: "ImagePullBackOff", message },
      { message: text, cause: error },
    );
  }

  /** What makes two pulls the same: the image and who asks for it. */
  private async keyOf(image: string, request: PullRequest, options: Abortable): Promise<string> {
    const auths = (await this.deps.credentials?.(request, options)) ?? [];
    const key =
      auths.length === 0 ? image : `${image} ${createHash("sha256").update(JSON.stringify(auths)).digest("hex")}`;
    this.wanted.set(key, { image, auths });
    return key;
  }

  /** With each credential in turn until one is taken; without any when there is none. */
  private async pullAs(key: string, options: Abortable): Promise<string> {
    const { image, auths } = this.wanted.get(key) ?? { image: key, auths: [] };
    this.wanted.delete(key);
    const [first, ...others] = auths;
    const pull = (auth: ImageAuth | undefined): Promise<string> =>
      this.deps.images.pullImage(image, auth === undefined ? {} : { auth }, options);
    let attempt = pull(first);
    for (const auth of others) {
      attempt = attempt.catch((error: unknown) => {
        if (options.signal.aborted) throw error;
        return pull(auth);
      });
    }
    return attempt;
  }

  /** One real pull: waits for its turn and for the rate, then asks the runtime. */
  private pullInTurn(
    key: string,
    work: Abortable & { onDetail(text: string): void },
  ): Promise<{ ref: string; tookMs: number }> {
    const { clock } = this.deps;
    const pull = async (): Promise<{ ref: string; tookMs: number }> => {
      await this.bucket.take(work);
      work.onDetail("pulling");
      const began = clock.now().mono;
      const ref = await this.pullAs(key, work);
      return { ref, tookMs: clock.now().mono - began };
    };
    const onPosition = (position: number): void => {
      if (position > 0) work.onDetail(`place ${position} in the pull queue`);
    };
    return this.lane.run(pull, { signal: work.signal, onPosition });
  }
}

function backoffKey({ pod, container }: PullRequest): string {
  return `${pod.metadata.uid}_${container.image}`;
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)}ms` : `${(ms / 1000).toFixed(3)}s`;
}
